import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  attemptSentences,
  attemptTitle,
  explanationSentences,
  lobbySentences,
  lobbyStopText,
  microsecondsText,
  refusingRuleText,
  seatEndText,
  VERDICT_TEXTS,
  waitSentence,
} from './explanation-words.ts'
import { type Attempt, type Explanation, VERDICTS } from './matchmaker/explanations.ts'

const LOBBY_ID = '0190163d-8694-739b-aea5-966c26f8ad91'
const ATTEMPT: Attempt = {
  offset: 1_250,
  outcome: 'refused',
  code: 'MATCHMAKER_TOO_MANY_LOBBIES',
  places: [],
  candidates: [],
  candidates_left_out: 0,
  limits: {
    client_limit: 'max_players_per_client',
    client_players: 0,
    client_players_max: 8,
    lobbies: 5,
    lobby_count_max: 5,
  },
}
const EXPLANATION: Explanation = {
  ray_id: LOBBY_ID,
  create_ts: '2026-11-23T07:00:00.000Z',
  operation: 'lobbies.find',
  namespace_id: LOBBY_ID,
  duration: 2_000,
  asked: {},
  attempts: [],
  waits: [],
  lobbies: [],
}

test('a refusal says its code, its cause and its remedy', () => {
  const sentences = explanationSentences({ ...EXPLANATION, code: 'MATCHMAKER_TOO_MANY_LOBBIES', attempts: [ATTEMPT] })
  assert.equal(sentences[0], 'The request was refused with MATCHMAKER_TOO_MANY_LOBBIES, after 2 ms.')
  assert.equal(sentences.length, 3)
  assert.deepEqual(
    explanationSentences({ ...EXPLANATION, code: 'constructor' }).length,
    1,
    'no other member of an object',
  )
})

test('a refusal for a name that does not exist says the name that the request asked for', () => {
  const refused = { ...EXPLANATION, code: 'MATCHMAKER_GAME_MODE_NOT_FOUND' }
  const [, cause] = explanationSentences({ ...refused, asked: { game_modes: ['chess'] } })
  assert.equal(cause, 'The version that is deployed in the namespace has no game mode called `chess`.')
  const [, several] = explanationSentences({ ...refused, asked: { game_modes: ['duel', 'chess'] } })
  assert.match(several!, /`metadata\.game_mode`/, 'only the response knows which of several it was')
  const [, region] = explanationSentences({
    ...EXPLANATION,
    code: 'MATCHMAKER_REGION_NOT_FOUND',
    asked: { game_modes: ['duel'], regions: ['$&'] },
  })
  assert.equal(region, 'The platform has no region called `$&`.')
})

test('a seat says whether a lobby was started, and what checks it passed', () => {
  const created: Attempt = { ...ATTEMPT, outcome: 'created', lobby_id: LOBBY_ID }
  assert.deepEqual(explanationSentences({ ...EXPLANATION, captcha: 'passed', attempts: [created] }), [
    'No open lobby had a place, so a new lobby was started, after 2 ms.',
    'The captcha was passed.',
  ])
  assert.equal(
    attemptTitle(created, 0),
    'Decision 1, after 1.3 ms: No open lobby had a place, so a new lobby was started with MATCHMAKER_TOO_MANY_LOBBIES (lobby 26f8ad91).',
  )
})

test('a decision says its limits, failed starts and what is left out', () => {
  assert.deepEqual(attemptSentences(ATTEMPT), [
    'The client had 0 of 8 players (max_players_per_client).',
    'The namespace had 5 of 5 lobbies (lobby_count_max).',
    'No lobby was considered.',
  ])
  const failed_starts = { count: 4, pause: 5_000_000, last_lobby_id: LOBBY_ID }
  const sentences = attemptSentences({ ...ATTEMPT, failed_starts, candidates_left_out: 1 })
  assert.match(sentences[2]!, /4 starts of a lobby had failed in a row.* No lobby is started for 5 s\.$/)
  assert.equal(sentences.at(-1), 'Candidates left out here: 1.')
})

test('every verdict, wait and end of a seat or lobby has words', () => {
  for (const verdict of VERDICTS) assert.match(VERDICT_TEXTS[verdict], /^[a-z]/)
  assert.equal(
    waitSentence({ lobby_id: LOBBY_ID, duration: 1_500_000, end: 'timeout' }),
    'The request waited 1.5 s for lobby 26f8ad91: its server was not ready in time.',
  )
  assert.equal(seatEndText('expired'), 'did not connect before the deadline')
  assert.equal(seatEndText('not_known_yet'), 'not known yet')
  assert.equal(lobbyStopText('idle'), 'nobody played in it')
})

test('a lobby that failed says how its server ended and where it listened', () => {
  const sentences = lobbySentences({
    lobby_id: LOBBY_ID,
    is_ready: false,
    stop_reason: 'never_ready',
    exit_code: 1,
    exit_reason: 'exit',
    listening: { open: [], shut: ['game'], others: ['tcp 127.0.0.1:3000'] },
    protocol: { name: 'agones', state: 'Scheduled', health_ts: '2026-11-30T12:00:00.000Z', is_healthy: false },
    log_lines: [],
    warnings: ['A warning.'],
  })
  assert.deepEqual(sentences, [
    'Its server was not ready.',
    'The lobby was stopped: its server was not ready in time.',
    'Its server ended with exit code 1 (exit).',
    'It does not listen at game.',
    'It also listens at tcp 127.0.0.1:3000, which the version does not name.',
    'Its server reported to Agones: Scheduled, not healthy, last health 2026-11-30T12:00:00.000Z.',
    'A warning.',
  ])
})

test('durations have the unit that fits', () => {
  assert.deepEqual([380, 9_900, 250_400, 1_500_000].map(microsecondsText), ['0.38 ms', '9.9 ms', '250 ms', '1.5 s'])
})

test('a rule that refuses others says how many, its limit, and in how many whole seconds it widens', () => {
  const rule = 'near skill'
  assert.equal(
    refusingRuleText({ rule, candidates: 3, limit: 1_500, widens_in_ms: 4_001 }).replaceAll('\u00a0', ' '),
    'refuses 3 requests at its limit of 1,500, and widens in 5 s',
  )
  assert.equal(refusingRuleText({ rule, candidates: 1 }), 'refuses 1 request')
})
