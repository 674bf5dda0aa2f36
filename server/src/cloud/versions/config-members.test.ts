// Nothing of a version config is accepted without effect: each member of the schema's game modes either changes what the
// platform makes of the config, or is refused. Captcha, site, routes and kv are not resolved: their readers get them whole.
import assert from 'node:assert'
import { test } from 'node:test'
import { type ErrorDetail, gameModesOf, type IdentityRequirement, VersionConfig } from '@musterhost/contract'
import { checkActions, checkAdmission, checkPorts } from '@musterhost/contract/version-check'

type Schema = {
  type?: string
  enum?: unknown[]
  minimum?: number
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  items?: Schema
}
type Json = { [name: string]: unknown }

/** Stands for the names of game modes, regions, ports and variables: good as each of them. */
const NAME = 'a'
/** Texts are free but for these. */
const TEXTS: Record<string, string> = { image_id: '0190163d-8694-739b-aea5-966c26f8ad91', url: 'https://example.org/x' }
/** What the sibling members must be for a member to be checked: an action that is off has no other members. */
const BESIDE: Record<string, Json> = {
  enabled: {},
  min: { max: 32 },
  max: { min: 1 },
  url: {},
  headers: { url: 'https://example.org/x' },
}

/** `ratings` of a game mode: the api reads whether it is there, which ratings.test.ts shows. */
const READ_ELSEWHERE: ReadonlySet<string> = new Set(['ratings'])

/** The paths of all members that have no members of their own. */
function leavesOf(schema: Schema, path: string[] = []): { path: string[]; schema: Schema }[] {
  const named = Object.entries(schema.properties ?? {})
  const mapped = Object.values(schema.patternProperties ?? {}).map((value): [string, Schema] => [NAME, value])
  const below = [...named, ...mapped].flatMap(([name, value]) => leavesOf(value, [...path, name]))
  if (READ_ELSEWHERE.has(path.at(-1) ?? '')) return []
  return below.length > 0 ? below : [{ path, schema }]
}

/** Two values at least, of which one differs from every default. */
function valuesOf(name: string, { type, enum: members, minimum = 0 }: Schema): unknown[] {
  if (members !== undefined) return members
  if (type === 'boolean') return [false, true]
  if (type === 'integer') return [minimum, minimum + 7]
  if (type === 'array') return [['x'], ['y']]
  if (type === 'object') return [{}]
  return [TEXTS[name] ?? 'x']
}

/** A config with this member, and with those that it cannot be without. */
function configWith(path: readonly string[], value: unknown): VersionConfig {
  const config: Json = { matchmaker: { game_modes: { [NAME]: {} } } }
  let at = config
  for (const name of path.slice(0, -1)) {
    // Only a server with a protocol has options of one.
    if (name === 'protocol_options') at.protocol = 'agones'
    at[name] ??= {}
    at = at[name] as Json
  }
  const last = path.at(-1)!
  const beside = BESIDE[last] ?? (path.includes('actions') ? { enabled: true } : {})
  Object.assign(at, beside, value === undefined ? {} : { [last]: value })
  return config as VersionConfig
}

function refusalsOf({ matchmaker }: VersionConfig): ErrorDetail[] {
  const rules = { host_ranges: [{ min: 1, max: 65_535 }], has_certificates: true, is_swarm: false }
  const mode = matchmaker!.game_modes[NAME]!
  return [matchmaker!.docker, mode.docker]
    .flatMap((docker) =>
      docker === undefined ? [] : [...checkPorts(docker, rules, []), ...checkAdmission(docker, [])],
    )
    .concat(checkActions(() => null, mode.actions ?? {}, []))
}

function hasEffect(path: readonly string[], schema: Schema): boolean {
  const name = path.at(-1)!
  const without = JSON.stringify([...gameModesOf(configWith(path, undefined))])
  return valuesOf(name, schema).some((value) => {
    const config = configWith(path, value)
    if (JSON.stringify([...gameModesOf(config)]) !== without) return true
    return refusalsOf(config).some((refusal) => refusal.path.includes(name))
  })
}

/** The matchmaker reads `fill_outdated_lobbies` from the config itself: version-pin.test.ts shows its effect. */
const { captcha, fill_outdated_lobbies: _, ...resolved } = (VersionConfig as Schema).properties!.matchmaker!.properties!

test('each member of a game mode has an effect, or is refused', () => {
  assert.ok(captcha !== undefined)
  const leaves = leavesOf({ properties: { matchmaker: { properties: resolved } } })
  assert.ok(leaves.length > 50, String(leaves.length))
  const idle = leaves.filter(({ path, schema }) => !hasEffect(path, schema)).map(({ path }) => path.join('.'))
  assert.deepStrictEqual(idle, [])
})

test('a member that nothing reads is found', () => {
  const forgotten = leavesOf({
    properties: { matchmaker: { properties: { ...resolved, forgotten: { type: 'string' } } } },
  })
  const idle = forgotten.filter(({ path, schema }) => !hasEffect(path, schema)).map(({ path }) => path.join('.'))
  assert.deepStrictEqual(idle, ['matchmaker.forgotten'])
})

test('the two values of who may call that have an effect are none and guest', () => {
  const refusals = (identity_requirement: IdentityRequirement) =>
    refusalsOf(
      configWith(['matchmaker', 'game_modes', NAME, 'actions', 'find', 'identity_requirement'], identity_requirement),
    )
  assert.deepStrictEqual([refusals('none').length, refusals('guest').length, refusals('registered').length], [0, 0, 1])
})
