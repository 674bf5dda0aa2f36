// What every refusal says: the command, its exit code, and the words that name the field, the line or the remedy.
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  consumeGroupInvite,
  createCloudToken,
  createGroup,
  createGroupInvite,
  listGameCloudTokens,
  listGroups,
  revokeGameCloudToken,
} from '@musterhost/contract'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import { freePorts } from '../../server/test/support/free-ports.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { createProject, type DeployedProject, MATCHMAKER } from './deploy-steps.ts'

export type RefusalWorld = {
  platform: Platform
  project: DeployedProject
  group_id: string
  tokens: Record<'expired' | 'revoked' | 'game' | 'viewer' | 'stranger', string>
  /** A server that is no platform. */
  other_url: string
  /** Nothing listens there. */
  closed_url: string
}

export type Refusal = {
  what: string
  args: readonly string[] | ((world: RefusalWorld) => readonly string[])
  env?: (world: RefusalWorld) => Record<string, string>
  input?: string
  /** Of the folder; default: the project. */
  folder?: string
  code: 1 | 2 | 3 | 4
  /** In stderr. */
  says: readonly RegExp[]
  /** The platform refused: its ray id and the page of its code are there. */
  is_platforms?: true
}

const UNKNOWN_ID = '0190163d-8694-739b-aea5-966c26f8ad91'
/** Nothing listens there. */
const AWAY = 'http://127.0.0.1:9'
const HOUR_MS = 60 * 60_000

const as =
  (name: keyof RefusalWorld['tokens']) =>
  ({ tokens }: RefusalWorld) => ({ MUSTER_TOKEN: tokens[name] })

const USAGE: readonly Refusal[] = [
  { what: 'a misspelt command', args: ['lgoin'], code: 2, says: [/unknown command 'lgoin'/, /Did you mean login\?/] },
  {
    what: 'a misspelt command of a family',
    args: ['games', 'creat'],
    code: 2,
    says: [/'creat' is no command of muster games/, /Did you mean create\?/],
  },
  { what: 'a misspelt option', args: ['lobbies', '--mdoe', 'x'], code: 2, says: [/'--mdoe'/, /Did you mean --mode\?/] },
  { what: 'a missing argument', args: ['lobby'], code: 2, says: [/missing required argument 'lobby'/] },
  { what: 'an argument too many', args: ['whoami', 'me'], code: 2, says: [/too many arguments/] },
  { what: 'a choice that does not exist', args: ['open', 'nowhere'], code: 2, says: [/site, docs, api/] },
  { what: 'a number out of range', args: ['swarm', '0'], code: 2, says: [/whole number from 1 to/] },
  {
    what: 'a duration without a unit',
    args: ['tokens', 'create', '--expires', '30'],
    code: 2,
    says: [/--expires/, /30d/],
  },
  {
    what: 'a time that is none',
    args: ['logs', '--since', 'yesterday'],
    code: 2,
    says: [/--since/, /It takes a time like/],
  },
  {
    what: 'a wrong regular expression',
    args: ['logs', '--filter', '('],
    code: 2,
    says: [/--filter is not a regular expression/],
  },
  {
    what: 'an unknown limit',
    args: ['limits', 'set', 'lobby_cuont_max=2'],
    code: 2,
    says: [/Did you mean lobby_count_max\?/],
  },
  {
    what: 'a limit that is no number',
    args: ['limits', 'set', 'lobby_count_max=many'],
    code: 2,
    says: [/lobby_count_max takes a whole number/],
  },
  { what: 'a value that is not JSON', args: ['kv', 'put', 'key', 'no json'], code: 2, says: [/JSON/] },
  {
    what: 'an unknown data set',
    args: ['analytics', 'player_cuont'],
    code: 2,
    says: [/Did you mean player_count\?/, /Data sets: /],
  },
  {
    what: 'an address of no platform',
    args: ['login', '--url', 'ftp://x', '--token-stdin'],
    code: 2,
    says: [/--url is not the address of a platform/, /https:\/\/muster\.example\.com/],
  },
  {
    what: 'an id that is none',
    args: ['lobby', 'xyz'],
    code: 2,
    says: [/xyz is not the id of a lobby/, /muster lobbies/],
  },
  {
    what: 'a setting that does not exist',
    args: ['backup', 'folder'],
    env: () => ({ MUSTER_EDGE_HTTP_PROT: '1' }),
    code: 2,
    says: [/MUSTER_EDGE_HTTP_PROT is not a setting/, /Did you mean MUSTER_EDGE_HTTP_PORT\?/],
  },
]

const NO_TERMINAL: readonly Refusal[] = [
  {
    what: 'a deletion without consent',
    args: ['namespaces', 'delete', 'staging'],
    code: 2,
    says: [/Give the option --yes\./],
  },
  { what: 'a rollback without consent', args: ['rollback', '0.0.0'], code: 2, says: [/Give the option --yes\./] },
  {
    what: 'a login that nobody confirms',
    args: ['login', '--url', AWAY],
    code: 2,
    says: [/--token-stdin/, /MUSTER_TOKEN/],
  },
  {
    what: 'a login without an address',
    args: ['login'],
    env: () => ({ MUSTER_URL: '' }),
    folder: 'empty',
    code: 2,
    says: [/Give the option --url URL\./],
  },
  {
    what: 'a login without a token',
    args: ['login', '--url', AWAY, '--token-stdin'],
    code: 2,
    says: [/Standard input is empty/],
  },
  {
    what: 'a template that is not named',
    args: ['init', 'new'],
    code: 2,
    says: [/Give the option --template node-ws\|/],
  },
]

const FILES: readonly Refusal[] = [
  {
    what: 'no muster.yaml',
    args: ['deploy'],
    folder: 'empty',
    code: 2,
    says: [/There is no muster\.yaml/, /muster init/],
  },
  {
    what: 'an unknown member',
    args: ['deploy'],
    folder: 'misspelt',
    code: 2,
    says: [/\n {2}4:3 matchmaker\.game_mode: .*Did you mean game_modes\?/],
  },
  {
    what: 'a value of a wrong kind',
    args: ['config', 'check'],
    folder: 'wrong-kind',
    code: 2,
    says: [/\n {2}4:\d+ matchmaker\.game_modes\.default\.max_players: /],
  },
  {
    what: 'a file that is not YAML',
    args: ['config', 'check'],
    folder: 'no-yaml',
    code: 2,
    says: [/\n {2}2:1 file: Flow sequence/],
  },
  {
    what: 'a file that does not exist',
    args: ['config', 'check', 'nowhere.yaml'],
    code: 2,
    says: [/nowhere\.yaml does not exist\./],
  },
  {
    what: 'a folder that does not exist',
    args: ['deploy'],
    folder: 'no-folder',
    code: 2,
    says: [/2:19 server\.folder: There is no folder missing\./],
  },
  {
    what: 'a template over files',
    args: ['init', '.', '--template', 'static', '--name', 'x'],
    code: 2,
    says: [/has these files already: muster\.yaml/, /Nothing was written/],
  },
]

const UNKNOWN: readonly Refusal[] = [
  {
    what: 'an unknown game',
    args: ['namespaces', '--game', 'arenna'],
    code: 1,
    says: [/There is no game arenna\. Did you mean arena\?/, /Games: /],
  },
  {
    what: 'an unknown namespace',
    args: ['deploy', '--namespace', 'prodd'],
    code: 1,
    says: [/has no namespace prodd\. Did you mean prod\?/, /Namespaces: /],
  },
  {
    what: 'an unknown version',
    args: ['drain', 'v11'],
    code: 1,
    says: [/has no version v11\. Did you mean v1\?/, /muster versions/],
  },
  {
    what: 'an unknown lobby',
    args: ['lobby', '0123456789ab'],
    code: 1,
    says: [/No lobby of the namespace ends in 0123456789ab/, /muster lobbies --all/],
  },
  { what: 'an unknown region', args: ['lobbies', '--region', 'mars'], code: 1, says: [/mars/, /local/] },
  {
    what: 'an unknown group',
    args: ['groups', 'get', 'Developer'],
    code: 1,
    says: [/There is no group Developer\. Did you mean Developers\?/],
  },
  {
    what: 'an unknown member of a group',
    args: ['members', 'role', 'vera@example.co', 'viewer', '--group', 'Developers'],
    code: 1,
    says: [/has no member vera@example\.co\./, /muster members list/],
  },
  {
    what: 'an unknown build',
    args: ['builds', 'delete', 'nothing', '--yes'],
    code: 1,
    says: [/The game has no build nothing/, /muster builds list/],
  },
  {
    what: 'an unknown context',
    args: ['whoami', '--context', 'prod'],
    env: () => ({ MUSTER_URL: '' }),
    code: 1,
    says: [/There is no context prod\./, /muster context list/],
  },
  {
    what: 'an unknown id of a game',
    args: ['games', 'get', UNKNOWN_ID],
    code: 1,
    says: [/GAME_NOT_FOUND/],
    is_platforms: true,
  },
  {
    what: 'an unknown token',
    args: ['tokens', 'revoke', UNKNOWN_ID],
    code: 1,
    says: [/TOKEN_NOT_FOUND/],
    is_platforms: true,
  },
  { what: 'an unknown ray', args: ['explain', UNKNOWN_ID], code: 1, says: [/RAY/], is_platforms: true },
  {
    what: 'a search for nothing that exists',
    args: ['search', 'nonsense'],
    code: 1,
    says: [/text: /],
    is_platforms: true,
  },
  {
    what: 'a name that cannot be one',
    args: ['namespaces', 'create', 'Not A Name'],
    code: 1,
    says: [/name_id: /],
    is_platforms: true,
  },
  {
    what: 'a name that is taken',
    args: ['games', 'create', 'arena', '--group', 'Developers'],
    code: 1,
    says: [/arena|name/],
    is_platforms: true,
  },
  {
    what: 'a version that is in use',
    args: ['games', 'delete', 'arena', '--yes'],
    code: 1,
    says: [/held by namespace /],
    is_platforms: true,
  },
  {
    what: 'a game mode that does not exist',
    args: ['find', '--mode', 'nowhere'],
    code: 1,
    says: [/MATCHMAKER_GAME_MODE_NOT_FOUND/],
    is_platforms: true,
  },
]

const NOT_ALLOWED: readonly Refusal[] = [
  {
    what: 'no platform is chosen',
    args: ['whoami'],
    env: () => ({ MUSTER_URL: '', MUSTER_TOKEN: '' }),
    folder: 'empty',
    code: 2,
    says: [/No platform is chosen\./, /muster login --url/, /muster start/],
  },
  {
    what: 'no one has logged in',
    args: ['games'],
    env: () => ({ MUSTER_TOKEN: '' }),
    code: 3,
    says: [/You are not logged in to http/, /MUSTER_TOKEN/],
  },
  {
    what: 'a wrong token',
    args: ['games'],
    env: () => ({ MUSTER_TOKEN: 'cloud.nonsense' }),
    code: 3,
    says: [/TOKEN_INVALID/],
    is_platforms: true,
  },
  {
    what: 'an expired token',
    args: ['games'],
    env: as('expired'),
    code: 3,
    says: [/TOKEN_EXPIRED/],
    is_platforms: true,
  },
  {
    what: 'a revoked token',
    args: ['games'],
    env: as('revoked'),
    code: 3,
    says: [/TOKEN_REVOKED/],
    is_platforms: true,
  },
  {
    what: 'a token of a game for its group',
    args: ['groups'],
    env: as('game'),
    code: 3,
    says: [/API_FORBIDDEN/],
    is_platforms: true,
  },
  {
    what: 'a deploy by a viewer',
    args: ['deploy'],
    folder: 'changed',
    env: as('viewer'),
    code: 3,
    says: [/GROUP_INSUFFICIENT_PERMISSIONS/],
    is_platforms: true,
  },
  {
    what: 'a limit that a viewer sets',
    args: ['limits', 'set', 'lobby_count_max=1'],
    env: as('viewer'),
    code: 3,
    says: [/GROUP_INSUFFICIENT_PERMISSIONS/],
    is_platforms: true,
  },
  {
    what: 'a sign-in link for a program of a game',
    args: ['sign-in-link'],
    env: as('game'),
    code: 3,
    says: [/A sign-in link is for administrators/, /muster admin-token/],
  },
  {
    what: 'the audit log of another group',
    args: ({ group_id }) => ['audit', '--group', group_id],
    env: as('stranger'),
    code: 1,
    says: [/There is no group /],
  },
  {
    what: 'the game of another group',
    args: ['games', 'get', 'arena'],
    env: as('stranger'),
    code: 1,
    says: [/There is no game arena\./],
  },
]

const AWAY_ROWS: readonly Refusal[] = [
  {
    what: 'a platform that does not run',
    args: ['games'],
    env: ({ closed_url }) => ({ MUSTER_URL: closed_url }),
    code: 1,
    says: [/The platform at http:\S+ cannot be reached \(ECONNREFUSED\)/, /muster start/],
  },
  {
    what: 'a deploy to a platform that does not run',
    args: ['deploy'],
    env: ({ closed_url }) => ({ MUSTER_URL: closed_url }),
    code: 1,
    says: [/cannot be reached/],
  },
  {
    what: 'a server that is no platform',
    args: ['games'],
    env: ({ other_url }) => ({ MUSTER_URL: other_url }),
    code: 1,
    says: [/does not respond like a Muster platform/, /Check the address/],
  },
  {
    what: 'a DNS record that is not found in time',
    args: ['domains', 'add', 'play.example.com', '--timeout', '1s'],
    code: 4,
    says: [/has not found the record of play\.example\.com yet/, /muster domains list/],
  },
]

export const REFUSALS: readonly Refusal[] = [
  ...USAGE,
  ...NO_TERMINAL,
  ...FILES,
  ...UNKNOWN,
  ...NOT_ALLOWED,
  ...AWAY_ROWS,
]

/** The folders that rows name, beside the project. */
function writeFolders({ folder }: DeployedProject): void {
  const write = (name: string, yaml: string | null): void => {
    mkdirSync(join(folder, name, 'server'), { recursive: true })
    if (yaml !== null) writeFileSync(join(folder, name, 'muster.yaml'), yaml)
  }
  const head = 'game: arena\nserver: { folder: server }\n'
  write('changed', head + MATCHMAKER.replace('max_players: 4', 'max_players: 5'))
  writeFileSync(join(folder, 'changed/server/server.mjs'), LEAST_SERVER)
  write('misspelt', head + MATCHMAKER.replace('game_modes', 'game_mode'))
  write('wrong-kind', head + MATCHMAKER.replace('max_players: 4', 'max_players: four'))
  write('no-yaml', 'game: [\n')
  write('no-folder', `game: arena\nserver: { folder: missing }\n${MATCHMAKER}`)
}

export async function openRefusalWorld(t: TestContext): Promise<RefusalWorld> {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' }
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', env })
  const { client, ctx } = platform
  const project = await createProject(t, platform, { game: 'arena', in_threads: true })
  await project.deploy('--detach')
  writeFolders(project)
  const { game_id } = project
  const { group_id } = (await client.call(listGroups, {})).groups[0]!
  await client.call(createGroup, { body: { display_name: 'Others' } })

  const { token: revoked } = await client.call(createCloudToken, { params: { game_id } })
  const { tokens } = await client.call(listGameCloudTokens, { params: { game_id } })
  await client.call(revokeGameCloudToken, { params: { game_id, token_id: tokens[0]!.token_id } })
  const { token: game } = await client.call(createCloudToken, { params: { game_id } })
  const lifetime = { now_ms: ctx.now() - 2 * HOUR_MS, lifetime_ms: HOUR_MS }
  const expired = ctx.keys.issue({ kind: 'access', name: 'test' }, lifetime)
  const viewer = await logIn(platform, mail, 'vera@example.com')
  const { code } = await client.call(createGroupInvite, { params: { group_id }, body: { role: 'viewer' } })
  await viewer.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
  const stranger = await logIn(platform, mail, 'sam@example.com')

  const [closed_port] = await freePorts(1)
  const server = createServer((_request, response) => response.end('<h1>Another server</h1>'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const other_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    platform,
    project,
    group_id,
    tokens: { expired, revoked, game, viewer: viewer.token, stranger: stranger.token },
    other_url,
    closed_url: `http://127.0.0.1:${closed_port}`,
  }
}
