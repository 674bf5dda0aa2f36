// The screens of the commands that manage: games, namespaces, groups, members, tokens, domains, limits, stored files, entries,
// contexts and the audit log.
import type { TestContext } from 'node:test'
import {
  completeDeviceLink,
  consumeGroupInvite,
  createCloudToken,
  createGroupInvite,
  listGameCloudTokens,
  listGroups,
  listNodeInvitations,
  putNoticeTarget,
  putSchedule,
  putSignInProvider,
  updateProfile,
} from '@musterhost/contract'
import { newBuild, newSite } from '../../server/test/cloud/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject, MATCHMAKER } from './deploy-steps.ts'
import type { Screen } from './program.ts'
import { agrees, inFolder, PLATFORM_BEHIND_MS, type Shown, type Step } from './screens.ts'

export type ManageWorld = Shown & {
  platform: Platform
  game_id: string
  url: string
  /** A token of the game, for logging in. */
  cloud_token: string
}

type ManageStep = Step<ManageWorld>

/** The same with and without a terminal. */
const reads = (name: string, ...args: string[]): ManageStep => ({ name, args: () => args })

const INCIDENT_ID: [RegExp, string] = [/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID']

async function firstIncident({ platform }: ManageWorld): Promise<string> {
  const rows = platform.ctx.db.selectFrom('status_incidents').select('incident_id').orderBy('create_ts')
  return (await rows.executeTakeFirstOrThrow()).incident_id
}

const GAMES: readonly ManageStep[] = [
  {
    name: 'games-create',
    args: () => ['games', 'create', 'second', '--display-name', 'Second game'],
    piped: () => ['games', 'create', 'third'],
  },
  reads('games-list', 'games', 'list'),
  reads('games-get', 'games', 'get', 'arena'),
  { name: 'games-rename', args: () => ['games', 'rename', 'second', 'The second one'] },
  {
    name: 'games-delete',
    args: () => ['games', 'delete', 'second'],
    types: agrees,
    piped: () => ['games', 'delete', 'third', '--yes'],
  },
  {
    name: 'namespaces-create',
    args: () => ['namespaces', 'create', 'beta', '--display-name', 'For testers'],
    piped: () => ['namespaces', 'create', 'gamma', '--from', 'v1'],
  },
  {
    name: 'namespaces-expire',
    args: () => ['namespaces', 'expire', 'beta', '--ttl', '7d'],
    piped: () => ['namespaces', 'expire', 'gamma', '--never'],
  },
  reads('namespaces-list', 'namespaces', 'list'),
  reads('namespaces-get', 'namespaces', 'get', 'beta'),
  { name: 'namespaces-rename', args: () => ['namespaces', 'rename', 'beta', 'For friends'] },
  {
    name: 'namespaces-delete',
    args: () => ['namespaces', 'delete', 'beta'],
    types: agrees,
    piped: () => ['namespaces', 'delete', 'gamma', '--yes'],
  },
]

const GROUPS: readonly ManageStep[] = [
  {
    name: 'groups-create',
    args: () => ['groups', 'create', 'Friends of games'],
    piped: () => ['groups', 'create', 'Others'],
  },
  reads('groups-list', 'groups', 'list'),
  reads('groups-get', 'groups', 'get', 'Developers'),
  { name: 'groups-rename', args: () => ['groups', 'rename', 'Others', 'Others'] },
  {
    name: 'groups-delete',
    args: () => ['groups', 'delete', 'Friends of games'],
    types: agrees,
    piped: () => ['groups', 'delete', 'Others', '--yes'],
  },
  {
    name: 'members-invite',
    args: () => ['members', 'invite', '--role', 'viewer', '--expires', '7d'],
    figures: [[/^[A-Z0-9]{12}$/gm, 'CODE']],
  },
  reads('members-list', 'members', 'list'),
  { name: 'members-role', args: () => ['members', 'role', 'ada@example.com', 'viewer'] },
  {
    name: 'members-remove',
    args: () => ['members', 'remove', 'ada@example.com'],
    types: agrees,
    piped: () => ['members', 'remove', 'bob@example.com', '--yes'],
  },
]

/** Records of a claim, and what the last check found, which depends on the time. */
const RECORDS: ManageStep['figures'] = [
  [/claim-[0-9a-f]{30}/g, 'claim-CLAIM'],
  [/(TXT +)[\w-]{32}/g, '$1SECRET'],
  // The words have different widths, and so has their column.
  [/ (?:failed|pending) {2,}/g, ' STATUS  '],
  [/STATUS +CERTIFICATE/g, 'STATUS  CERTIFICATE'],
  [/ (?:failed |pending)/g, ' STATUS '],
  [/^ {2}(?:last check: )?The name servers did not answer .*\n/gm, ''],
]

/** What differs in an invitation from run to run. */
const INVITATION: ManageStep['figures'] = [
  [/mj1\.\S+/g, 'INVITATION'],
  [/until \d\d:\d\d/g, 'until HH:MM'],
]

const NODES: readonly ManageStep[] = [
  {
    name: 'nodes-invite',
    args: () => ['nodes', 'invite', '--name', 'attic'],
    piped: () => ['nodes', 'invite', '--name', 'cellar', '--ttl', '1h'],
    figures: INVITATION,
  },
  reads('nodes-invitations', 'nodes', 'invitations'),
  {
    name: 'nodes-uninvite',
    args: async (world) => ['nodes', 'uninvite', await newestInvitation(world)],
    piped: async (world) => ['nodes', 'uninvite', await newestInvitation(world)],
  },
]

async function newestInvitation({ platform }: ManageWorld): Promise<string> {
  const { invitations } = await platform.client.call(listNodeInvitations, {})
  return invitations.find(({ state }) => state === 'open')!.invitation_id
}

const SETTINGS: readonly ManageStep[] = [
  { name: 'tokens-create', args: () => ['tokens', 'create', '--expires', '30d'] },
  reads('tokens-list', 'tokens', 'list'),
  {
    name: 'tokens-revoke',
    args: async (world) => ['tokens', 'revoke', await newestToken(world)],
    piped: async (world) => ['tokens', 'revoke', await newestToken(world)],
  },
  {
    name: 'domains-add',
    args: () => ['domains', 'add', 'play.example.com', '--timeout', '1s'],
    code: 4,
    figures: RECORDS,
    piped: () => ['domains', 'add', 'test.example.com', '--no-wait'],
    piped_code: 0,
  },
  { name: 'domains-list', args: () => ['domains', 'list'], figures: RECORDS },
  {
    name: 'domains-remove',
    args: () => ['domains', 'remove', 'play.example.com'],
    types: agrees,
    piped: () => ['domains', 'remove', 'test.example.com', '--yes'],
  },
  { name: 'limits-set', args: () => ['limits', 'set', 'lobby_count_max=20', 'max_players_per_client=4'] },
  reads('limits-get', 'limits', 'get'),
  reads('builds-list', 'builds', 'list'),
  {
    name: 'builds-delete',
    args: async ({ platform, game_id }) => ['builds', 'delete', await newBuild(platform, game_id)],
    types: agrees,
    piped: async ({ platform, game_id }) => ['builds', 'delete', await newBuild(platform, game_id), '--yes'],
  },
  reads('sites-list', 'sites', 'list'),
  {
    name: 'sites-delete',
    args: async ({ platform, game_id }) => ['sites', 'delete', await newSite(platform, game_id)],
    types: agrees,
    piped: async ({ platform, game_id }) => ['sites', 'delete', await newSite(platform, game_id), '--yes'],
  },
  {
    name: 'kv-put',
    args: () => ['kv', 'put', 'players/ada', '{"level":3,"name":"Ada"}'],
    piped: () => ['kv', 'put', 'players/bob'],
    input: () => '{"level":1}',
  },
  reads('kv-list', 'kv', 'list', 'players'),
  reads('kv-get', 'kv', 'get', 'players/ada'),
  { name: 'kv-delete', args: () => ['kv', 'delete', 'players/bob'] },
  {
    name: 'audit',
    args: () => ['audit', '--lines', '6'],
    figures: [[/[0-9a-f-]{6,}…/g, 'x…']],
  },
  {
    name: 'secrets-set',
    args: () => ['secrets', 'set', 'PAYMENT_KEY'],
    types: typesSecret,
    piped: () => ['secrets', 'set', 'PAYMENT_KEY', '--namespace', 'prod'],
    input: () => 'live-key-1234\n',
  },
  reads('secrets-list', 'secrets', 'list'),
  {
    name: 'secrets-remove',
    args: () => ['secrets', 'remove', 'PAYMENT_KEY'],
    types: agrees,
    piped: () => ['secrets', 'remove', 'PAYMENT_KEY', '--namespace', 'prod', '--yes'],
  },
  {
    name: 'sign-in-providers-set',
    args: () => [
      ...['sign-in-providers', 'set', 'studio', '--issuer', 'https://id.example.com', '--client-id', 'muster'],
      '--keep',
    ],
  },
  reads('sign-in-providers-list', 'sign-in-providers', 'list'),
  {
    name: 'sign-in-providers-remove',
    args: () => ['sign-in-providers', 'remove', 'studio'],
    types: agrees,
    piped: () => ['sign-in-providers', 'remove', 'studio-2', '--yes'],
    before: async ({ platform }) => {
      await platform.client.call(putSignInProvider, {
        params: { provider_name: 'studio-2' },
        body: { title: 'Studio', issuer: 'https://id.example.com', client_id: 'muster' },
      })
    },
  },
  {
    name: 'passkeys-remove',
    args: () => ['passkeys', 'remove', '00000000-0000-7000-8000-000000000000'],
    types: agrees,
    piped: () => ['passkeys', 'remove', '00000000-0000-7000-8000-000000000000', '--yes'],
  },
  {
    name: 'notices-set',
    args: () => ['notices', 'set', 'mail', '--kind', 'email', '--to', 'ada@example.com', '--events', 'players_record'],
  },
  reads('notices-test', 'notices', 'test', 'mail'),
  reads('notices-list', 'notices', 'list'),
  { ...reads('notices-deliveries', 'notices', 'deliveries', 'mail'), figures: [[/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID']] },
  {
    name: 'notices-resend',
    args: async ({ platform }) => {
      const rows = await platform.ctx.db.selectFrom('notices').select('notice_id').orderBy('number').execute()
      return ['notices', 'resend', 'mail', rows[0]!.notice_id]
    },
  },
  {
    name: 'notices-remove',
    args: () => ['notices', 'remove', 'mail'],
    types: agrees,
    piped: () => ['notices', 'remove', 'mail-2', '--yes'],
    before: async ({ platform, game_id }) => {
      await platform.client.call(putNoticeTarget, {
        body: { game_id, name: 'mail-2', kind: 'email', addresses: ['ada@example.com'], events: ['players_record'] },
      })
    },
  },
  {
    name: 'schedules-set',
    args: () => [
      ...['schedules', 'set', 'nightly', '--kind', 'restart', '--cron', '0 5 * * *', '--zone', 'Europe/Berlin'],
      ...['--deadline', '30m', '--before', '15m:say Restart in {minutes} minutes'],
    ],
    figures: [[/begins [^.]*\./g, 'begins in 8 h.']],
  },
  { ...reads('schedules-pause', 'schedules', 'pause', 'nightly') },
  { ...reads('schedules-list', 'schedules', 'list') },
  {
    ...reads('schedules-resume', 'schedules', 'resume', 'nightly'),
    figures: [[/begins [^.]*\./g, 'begins in 8 h.']],
  },
  {
    name: 'schedules-run',
    args: () => ['schedules', 'run', 'nightly'],
  },
  {
    ...reads('schedules-runs', 'schedules', 'runs', 'nightly'),
    before: async ({ platform }) => {
      await until('the runs have ended', async () => {
        const runs = await platform.ctx.db.selectFrom('schedule_runs').select('end_ts').execute()
        return runs.length > 0 && runs.every(({ end_ts }) => end_ts !== null)
      })
    },
  },
  {
    name: 'schedules-remove',
    args: () => ['schedules', 'remove', 'nightly'],
    types: agrees,
    piped: () => ['schedules', 'remove', 'nightly-2', '--yes'],
    before: async ({ platform, game_id }) => {
      const { namespace_id } = await platform.ctx.db
        .selectFrom('schedules')
        .select('namespace_id')
        .executeTakeFirstOrThrow()
      const times = { cron: '0 5 * * *', time_zone: 'Europe/Berlin', deadline_s: 60 }
      await platform.client.call(putSchedule, {
        params: { game_id },
        body: { namespace_id, name: 'nightly-2', kind: 'restart', ...times },
      })
    },
  },
  {
    name: 'status-page-on',
    args: () => ['status-page', 'on', '--text', 'Help: example.com/help'],
    piped: () => ['status-page', 'on', '--title', 'Is Arena up?'],
  },
  {
    name: 'status-page-show',
    args: async ({ platform }) => {
      // The first minute is measured soon, or not yet.
      await platform.ctx.pool.query(`update status_pages set view = view || '{"state":"unknown","measured_ts":null}'`)
      return ['status-page', 'show']
    },
  },
  {
    name: 'status-page-report',
    args: () => ['status-page', 'report', 'Games start slowly', '--text', 'We look into it.'],
    figures: [INCIDENT_ID],
  },
  {
    name: 'status-page-update',
    args: async (world) => [
      ...['status-page', 'update', await firstIncident(world), '--state', 'identified', '--text', 'A disk is slow.'],
    ],
    figures: [INCIDENT_ID],
  },
  {
    name: 'status-page-resolve',
    args: async (world) => ['status-page', 'resolve', await firstIncident(world)],
    figures: [INCIDENT_ID],
  },
  { ...reads('status-page-incidents', 'status-page', 'incidents'), figures: [INCIDENT_ID] },
  {
    name: 'status-page-delete',
    args: async (world) => ['status-page', 'delete', await firstIncident(world)],
    types: agrees,
    piped: async (world) => ['status-page', 'delete', await firstIncident(world), '--yes'],
    figures: [INCIDENT_ID],
  },
  reads('status-page-off', 'status-page', 'off'),
  reads('open', 'open', '--no-browser'),
]

const CONTEXTS: readonly ManageStep[] = [
  {
    name: 'login',
    args: ({ url }) => ['login', '--url', url],
    types: confirmsLink,
    figures: [
      [/device\.[\w.-]+/g, 'device.TOKEN'],
      [/number …\d{8}|number …[0-9a-f]{8}/g, 'number …NUMBER'],
    ],
    piped: ({ url }) => ['login', '--url', url, '--token-stdin', '--name', 'ci'],
    input: ({ cloud_token }) => cloud_token,
  },
  {
    name: 'context-add',
    args: ({ url }) => ['context', 'add', 'operator', '--url', url],
    types: async (screen, { platform }) => {
      await screen.shows('(not shown)')
      screen.type(`${platform.token}\r`)
    },
    piped: ({ url }) => ['context', 'add', 'other', '--url', url],
    input: ({ cloud_token }) => cloud_token,
  },
  reads('context-list', 'context', 'list'),
  reads('whoami', 'whoami', '--context', 'operator'),
  {
    ...reads('sign-in-link', 'sign-in-link', '--context', 'operator'),
    figures: [[/link=[\w-]+/g, 'link=LINK']],
  },
  { name: 'context-use', args: () => ['context', 'use', 'operator'] },
  {
    name: 'context-remove',
    args: () => ['context', 'remove', 'other'],
    piped: () => ['context', 'remove', 'ci'],
  },
  { name: 'logout', args: () => ['logout'], piped: ({ url }) => ['logout', '--context', contextOf(url)] },
]

/** Its times depend on the test. */
const NODE_TIMES: ManageStep['figures'] = [
  [/\S+ s ago|now/g, 'JUST NOW'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
]

const NODE_DRAINS: readonly ManageStep[] = [
  { name: 'nodes-list', args: () => ['nodes', 'list'], figures: NODE_TIMES },
  {
    name: 'nodes-drain',
    args: () => ['nodes', 'drain', 'main', '--at-match-end', '--deadline', '2h'],
    figures: NODE_TIMES,
  },
  { name: 'nodes-cancel', args: () => ['nodes', 'drain', 'main', '--cancel'], figures: NODE_TIMES },
  {
    name: 'nodes-remove',
    args: () => ['nodes', 'remove', 'main', '--force'],
    types: agrees,
    piped: () => ['nodes', 'remove', 'main', '--force', '--yes'],
  },
]

export const MANAGE_STEPS: readonly ManageStep[] = [...GAMES, ...GROUPS, ...SETTINGS, ...NODES, ...NODE_DRAINS]
/** Without MUSTER_TOKEN, which is used instead of the token of a context. */
export const CONTEXT_STEPS = CONTEXTS

async function newestToken({ platform, game_id }: ManageWorld): Promise<string> {
  const { tokens } = await platform.client.call(listGameCloudTokens, { params: { game_id } })
  return tokens.find(({ revoke_ts }) => revoke_ts === undefined)!.token_id
}

async function typesSecret(screen: Screen): Promise<void> {
  await screen.shows('(not shown)')
  screen.type('test-key-1234\r')
}

async function confirmsLink(screen: Screen, { platform, game_id }: ManageWorld): Promise<void> {
  await screen.shows('number …')
  const text = screen.text()
  const url = new URL(/https?:\/\/\S+/.exec(text.slice(text.indexOf('choose a game')))![0])
  const device_link_token = decodeURIComponent(url.hash === '' ? url.pathname.split('/').at(-1)! : url.hash.slice(1))
  await platform.client.call(completeDeviceLink, { body: { device_link_token, game_id } })
}

/** The name that login gives. */
function contextOf(url: string): string {
  return new URL(url).host.replace(':', '-')
}

export async function openManageWorld(t: TestContext): Promise<ManageWorld> {
  const mail = await startMailServer(t)
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_NODE: 'main', MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' },
  })
  platform.stepWallClock(-PLATFORM_BEHIND_MS)
  const { client } = platform
  const project = await createProject(t, platform, {
    game: 'arena',
    site: { 'index.html': '<h1>Arena</h1>' },
    matchmaker: `${MATCHMAKER}kv: {}\n`,
  })
  await project.deploy('--detach', '--message', 'The first one')
  const { groups } = await client.call(listGroups, {})
  const { group_id } = groups[0]!
  const { game_id } = project
  const { token: cloud_token } = await client.call(createCloudToken, { params: { game_id } })
  for (const name of ['ada', 'bob']) {
    const person = await logIn(platform, mail, `${name}@example.com`)
    const { code } = await client.call(createGroupInvite, { params: { group_id }, body: {} })
    await person.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
    await person.client.call(updateProfile, { body: { display_name: name } })
  }
  // The name of a context has the port.
  const hidden = [[`-${new URL(platform.edge_url).port}`, '-PORT']] as const
  const muster = { ...project.muster, ...inFolder(project) }
  return { muster, platform, game_id, cloud_token, url: platform.edge_url, hidden: () => hidden }
}
