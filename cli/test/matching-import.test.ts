import assert from 'node:assert/strict'
import test from 'node:test'
import { importFlexMatch } from '../src/matching/flexmatch.ts'
import { importPlayFab } from '../src/matching/playfab.ts'
import { wideningOf } from '../src/matching/result.ts'

const RED_AND_BLUE = ['red', 'blue'].map((name) => ({ name, minPlayers: 5, maxPlayers: 5 }))
const flexRules = (...rules: object[]) => importFlexMatch({ ruleLanguageVersion: '1.0', teams: RED_AND_BLUE, rules })
const pathsOf = ({ losses }: { losses: readonly { path: string }[] }) => losses.map(({ path }) => path)

test('a rule set of FlexMatch becomes the same rules, and loses nothing that has an equal', () => {
  const { matching, losses } = importFlexMatch({
    name: 'five_against_five',
    ruleLanguageVersion: '1.0',
    playerAttributes: [
      { name: 'skill', type: 'number', default: 10 },
      { name: 'maps', type: 'string_list' },
      { name: 'mode', type: 'string' },
    ],
    algorithm: { strategy: 'exhaustiveSearch', expansionAgeSelection: 'newest', backfillPriority: 'high' },
    teams: RED_AND_BLUE,
    rules: [
      {
        name: 'fair',
        type: 'distance',
        measurements: ['avg(teams[*].players.attributes[skill])'],
        referenceValue: 'avg(flatten(teams[*].players.attributes[skill]))',
        maxDistance: 10,
      },
      { name: 'near', type: 'batchDistance', batchAttribute: 'skill', maxDistance: 500, partyAggregation: 'max' },
      {
        name: 'mode',
        type: 'comparison',
        operation: '=',
        measurements: ['flatten(teams[*].players.attributes[mode])'],
      },
      {
        name: 'even',
        type: 'comparison',
        operation: '=',
        measurements: ['count(teams[red].players)'],
        referenceValue: 'count(teams[blue].players)',
      },
      {
        name: 'maps',
        type: 'collection',
        operation: 'intersection',
        measurements: ['flatten(teams[*].players.attributes[maps])'],
        minCount: 1,
      },
      { name: 'fast', type: 'latency', maxLatency: 100 },
    ],
    expansions: [
      {
        target: 'rules[fair].maxDistance',
        steps: [
          { waitTimeSeconds: 5, value: 50 },
          { waitTimeSeconds: 10, value: 90 },
        ],
      },
      { target: 'rules[fast].maxLatency', steps: [{ waitTimeSeconds: 20, value: 150 }] },
    ],
  })
  assert.deepEqual(losses, [])
  assert.deepEqual(matching, {
    teams: [
      { name: 'red', min: 5, max: 5 },
      { name: 'blue', min: 5, max: 5 },
    ],
    attributes: { skill: { default: 10 } },
    rules: [
      { balance: 'skill', within: 20, widen: { every_s: 5, by: 80, to: 180 } },
      { near: 'skill', within: 500, party: 'greatest' },
      { same: 'mode' },
      { even_teams: 0 },
      { share: 'maps', at_least: 1 },
      { ping: 'region', within: 100, widen: { every_s: 20, by: 50, to: 150 } },
    ],
  })
})

test('a team of FlexMatch with a quantity becomes so many teams', () => {
  const { matching } = importFlexMatch({ teams: [{ name: 'squad', minPlayers: 1, maxPlayers: 4, quantity: 3 }] })
  assert.deepEqual(
    matching.teams?.map(({ name, max }) => [name, max]),
    [
      ['squad_1', 4],
      ['squad_2', 4],
      ['squad_3', 4],
    ],
  )
})

test('what FlexMatch has and the platform has not is named with its path', () => {
  const compound = { name: 'or', type: 'compound', statement: 'or(a, b)' }
  const limited = {
    name: 'n',
    type: 'comparison',
    operation: '<=',
    measurements: ['max(teams[*].players.attributes[level])'],
    referenceValue: 5,
  }
  const anyone = {
    name: 'd',
    type: 'distance',
    measurements: ['flatten(teams[*].players.attributes[skill])'],
    referenceValue: 1,
    maxDistance: 1,
  }
  const sort = { name: 's', type: 'distanceSort', sortDirection: 'ascending', sortAttribute: 'skill' }
  const party = { name: 'l', type: 'latency', maxLatency: 50, partyAggregation: 'avg' }
  const lost = flexRules(compound, limited, anyone, sort, party, { type: 'constructor' })
  assert.deepEqual(pathsOf(lost), [
    'rules[0]',
    'rules[1]',
    'rules[2]',
    'rules[3]',
    'rules[4].partyAggregation',
    'rules[5]',
  ])
  assert.deepEqual(lost.matching.rules, [{ ping: 'region', within: 50 }])

  const rest = importFlexMatch({
    playerAttributes: [{ name: 'modes', type: 'string_number_map' }],
    algorithm: { strategy: 'balanced', balancedAttribute: 'skill' },
    teams: [{ name: 'all of them', minPlayers: 1, maxPlayers: 4 }],
    expansions: [{ target: 'teams[all].minPlayers', steps: [] }],
    acceptance: true,
  })
  const paths = [
    'acceptance',
    'teams[0].name',
    'playerAttributes[0].type',
    'algorithm.strategy',
    'algorithm.balancedAttribute',
    'expansions[0].target',
  ]
  assert.deepEqual(pathsOf(rest), paths)
})

test('a count of players with a text becomes a sum, and says that the attribute has changed', () => {
  const medic = { name: 'medic', type: 'collection', operation: 'contains', referenceValue: 'medic', maxCount: 1 }
  const made = flexRules({ ...medic, measurements: ['flatten(teams[*].players.attributes[role])'] })
  assert.deepEqual(made.matching.rules, [{ sum: 'medic', between: [0, 1] }])
  assert.deepEqual(pathsOf(made), ['rules[0]'])
})

test('a distance to the average of teams of other sizes says that it is not quite the same', () => {
  const rule = {
    name: 'fair',
    type: 'distance',
    measurements: ['avg(teams[*].players.attributes[skill])'],
    referenceValue: 'avg(flatten(teams[*].players.attributes[skill]))',
    maxDistance: 10,
  }
  const teams = [
    { name: 'one', minPlayers: 1, maxPlayers: 1 },
    { name: 'many', minPlayers: 4, maxPlayers: 4 },
  ]
  const made = importFlexMatch({ teams, rules: [rule] })
  assert.deepEqual([made.matching.rules, pathsOf(made)], [[{ balance: 'skill', within: 20 }], ['rules[0]']])
})

test('steps become a widening only where all are equal', () => {
  const steps = (...pairs: [number, number][]) => pairs.map(([at_s, value]) => ({ at_s, value }))
  assert.deepEqual(wideningOf(10, steps([5, 12], [10, 14], [15, 16])), { every_s: 5, by: 2, to: 16 })
  assert.deepEqual(wideningOf(3, steps([5, 2], [10, 1])), { every_s: 5, by: 1, to: 1 })
  for (const other of [steps(), steps([5, 12], [15, 14]), steps([5, 12], [10, 16]), steps([5, 10]), steps([0, 12])]) {
    assert.equal(wideningOf(10, other), null)
  }
})

/** The two forms that the pages of PlayFab have. */
const SKILL = {
  Name: 'skill',
  Attribute: { Path: 'skill', Source: 'PlayerEntity' },
  AttributeNotSpecifiedBehavior: 'UseDefault',
  DefaultAttributeValue: 20,
  Difference: 10,
  MergeFunction: 'Min',
  Weight: 2,
  SecondsUntilOptional: 60,
  LinearExpansion: { Delta: 5, Limit: 50, SecondsBetweenExpansions: 10 },
}
const BUILD = {
  Name: 'build',
  Attribute: { Path: 'Build', Source: 'User' },
  AttributeNotSpecifiedBehavior: 'MatchAny',
  Weight: 1,
}

test('a queue of PlayFab becomes the same rules in both of its forms', () => {
  const queue = { Name: 'q', MinMatchSize: 2, MaxMatchSize: 4 }
  const [listed, typed] = [
    importPlayFab({
      MatchmakingQueue: {
        ...queue,
        Rules: [
          { Type: 'StringEqualityRule', ...BUILD },
          { Type: 'DifferenceRule', ...SKILL },
        ],
      },
    }),
    importPlayFab({ ...queue, StringEqualityRules: [BUILD], DifferenceRules: [SKILL] }),
  ]
  assert.deepEqual(listed, typed)
  assert.deepEqual(listed, {
    matching: {
      size: { min: 2, max: 4 },
      attributes: { Build: { from: 'player' }, skill: { default: 20 } },
      rules: [
        { same: 'Build' },
        {
          near: 'skill',
          within: 10,
          party: 'least',
          widen: { every_s: 10, by: 5, to: 50 },
          optional_after_s: 60,
          weight: 2,
        },
      ],
    },
    losses: [],
  })
})

test('every other rule of PlayFab that has an equal becomes it', () => {
  const user = (Path: string) => ({ Attribute: { Path, Source: 'PlayerEntity' } })
  const { matching, losses } = importPlayFab({
    SetIntersectionRules: [
      {
        ...user('maps'),
        MinIntersectionSize: 3,
        CustomExpansion: { MinIntersectionSizeOverrides: [{ Value: 2 }, { Value: 1 }], SecondsBetweenExpansions: 5 },
      },
    ],
    MatchTotalRules: [{ ...user('tank'), Min: 1, Max: 2 }],
    RegionSelectionRule: {
      Name: 'region',
      Path: 'Latencies',
      MaxLatency: 100,
      LinearExpansion: { Delta: 20, Limit: 200, SecondsBetweenExpansions: 5 },
    },
    TeamDifferenceRules: [{ ...user('skill'), Difference: 30 }],
    TeamSizeBalanceRule: { Name: 'even', Difference: 1 },
    Teams: [{ Name: 'Red', MinTeamSize: 1, MaxTeamSize: 5 }],
  })
  assert.deepEqual(losses, [])
  assert.deepEqual(matching, {
    teams: [{ name: 'Red', min: 1, max: 5 }],
    rules: [
      { share: 'maps', at_least: 3, widen: { every_s: 5, by: 1, to: 1 } },
      { sum: 'tank', between: [1, 2] },
      { balance: 'skill', within: 30 },
      { ping: 'region', within: 100, widen: { every_s: 5, by: 20, to: 200 } },
      { even_teams: 1 },
    ],
  })
})

test('what PlayFab has and the platform has not is named with its path', () => {
  const lost = importPlayFab({
    ServerAllocationEnabled: true,
    StringEqualityRules: [{ ...BUILD, Expansion: { EnabledOverrides: [true, false], SecondsBetweenExpansions: 5 } }],
    DifferenceRules: [
      {
        ...SKILL,
        LinearExpansion: undefined,
        CustomExpansion: { DifferenceOverrides: [{ Value: 20 }, null], SecondsBetweenExpansions: 5 },
      },
      { ...SKILL, Attribute: { Path: 'skill in duels', Source: 'User' } },
      { ...SKILL, Difference: undefined },
    ],
    TeamTicketSizeSimilarityRule: { Name: 'parties' },
    Rules: [{ Type: 'toString' }],
    MaxMatchSize: 200,
    MinMatchSize: 2,
  })
  assert.deepEqual(pathsOf(lost), [
    'ServerAllocationEnabled',
    'Rules[0]',
    'StringEqualityRules[0].Expansion',
    'DifferenceRules[0].CustomExpansion',
    'DifferenceRules[1].Attribute.Path',
    'DifferenceRules[2]',
    'TeamTicketSizeSimilarityRule',
    'teams',
  ])
})
