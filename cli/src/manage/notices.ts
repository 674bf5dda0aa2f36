// Targets of notices: of the game, a group or the platform. Addresses and tokens are read from standard input, and never printed.
import {
  deleteNoticeTarget,
  getGames,
  listGroups,
  listNoticeDeliveries,
  listNoticeTargets,
  type NoticeEvent,
  type NoticeKind,
  type NoticeTarget,
  putNoticeTarget,
  resendNotice,
  testNoticeTarget,
} from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { findGroup } from './groups.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export type NoticeOptions = GlobalOptions & { group?: string; platform?: boolean }
export type TargetOptions = NoticeOptions & {
  kind: NoticeKind
  events: NoticeEvent[]
  server?: string
  topic?: string
  chat?: string
  to?: string[]
  accessToken?: boolean
  onlyGame?: string[]
  onlyNamespace?: string[]
  everything?: boolean
  pause?: boolean
  keep?: boolean
  newKey?: boolean
}

type Scope = { session: Session; scope: { group_id?: string; game_id?: string }; where: string }

async function openScope(terminal: Terminal, options: NoticeOptions): Promise<Scope> {
  if (options.group !== undefined && options.platform === true) {
    throw new Failure('--group and --platform exclude each other.', {
      exit_code: EXIT.usage,
      remedy: 'Leave one of them out.',
    })
  }
  const session = await openSession(terminal, options)
  if (options.platform === true) return { session, scope: {}, where: `the platform at ${session.url}` }
  if (options.group !== undefined) {
    const { groups } = await session.client.call(listGroups, {})
    const { group_id, display_name } = findGroup(groups, options.group)
    return { session, scope: { group_id }, where: `${display_name} at ${session.url}` }
  }
  const { game_id, name_id } = await session.game()
  return { session, scope: { game_id }, where: `${name_id} at ${session.url}` }
}

async function openTarget(terminal: Terminal, name: string, options: NoticeOptions) {
  const open = await openScope(terminal, options)
  const { targets } = await open.session.client.call(listNoticeTargets, { query: open.scope })
  const target = targets.find((one) => one.name === name || one.target_id === name)
  if (target === undefined) {
    const names = targets.map((one) => one.name).join(', ')
    throw new Failure(`${open.where} has no target ${name}.`, {
      remedy: names === '' ? 'Make one: muster notices set NAME --kind discord' : `It has: ${names}.`,
    })
  }
  return { ...open, target, params: { target_id: target.target_id } }
}

export async function listTargets(terminal: Terminal, options: NoticeOptions): Promise<void> {
  const { session, scope, where } = await openScope(terminal, options)
  const { targets } = await session.client.call(listNoticeTargets, { query: scope })
  terminal.note(`Targets of notices of ${where}`)
  if (terminal.is_json) return terminal.json({ targets })
  printTable(
    terminal,
    targets,
    [
      { title: 'NAME', text: ({ name }) => name, is_whole: true },
      { title: 'KIND', text: ({ kind }) => kind },
      { title: 'STATE', text: stateOf },
      { title: 'WAITING', text: ({ waiting_count }) => String(waiting_count) },
      { title: 'LAST', text: ({ delivery_ts }) => (delivery_ts === undefined ? 'never' : ago(terminal, delivery_ts)) },
      { title: 'EVENTS', text: ({ events }) => events.join(' ') },
    ],
    'There is no target. Make one: muster notices set team-chat --kind discord --events deploy_live deploy_failed',
  )
}

function stateOf({ is_paused, pause_reason }: NoticeTarget): string {
  if (!is_paused) return 'on'
  return pause_reason === undefined ? 'paused' : `paused: ${pause_reason}`
}

/** What is secret of each kind, and comes from standard input. */
const SECRETS: Readonly<Record<NoticeKind, { member: 'url' | 'token'; what: string } | null>> = {
  discord: { member: 'url', what: 'The address of the webhook' },
  slack: { member: 'url', what: 'The address of the webhook' },
  webhook: { member: 'url', what: 'The address of the webhook' },
  telegram: { member: 'token', what: 'The token of the bot' },
  ntfy: null,
  email: null,
}

const ACCESS_TOKEN = { member: 'token', what: 'The access token of ntfy' } as const

type Filters = { game_ids?: string[]; namespace_ids?: string[] }

/** Filters of the options; without any option, the present ones of the target. */
async function filtersOf(
  session: Session,
  { name, ...scope }: { name: string; group_id?: string; game_id?: string },
  { onlyGame, onlyNamespace, everything = false }: TargetOptions,
): Promise<Filters> {
  if (everything) return {}
  if (onlyGame === undefined && onlyNamespace === undefined) {
    const { targets } = await session.client.call(listNoticeTargets, { query: scope })
    const { game_ids, namespace_ids } = targets.find((one) => one.name === name) ?? {}
    return { ...(game_ids && { game_ids }), ...(namespace_ids && { namespace_ids }) }
  }
  const games = onlyGame === undefined ? [] : (await session.client.call(getGames, {})).games
  const namespaces = onlyNamespace === undefined ? [] : (await session.gameFull()).namespaces
  const game_ids = onlyGame?.map((wanted) => idOf(wanted, 'game', games, ({ game_id }) => game_id))
  const namespace_ids = onlyNamespace?.map((wanted) =>
    idOf(wanted, 'namespace', namespaces, ({ namespace_id }) => namespace_id),
  )
  return { ...(game_ids && { game_ids }), ...(namespace_ids && { namespace_ids }) }
}

function idOf<T extends { name_id: string }>(wanted: string, what: string, all: readonly T[], id: (one: T) => string) {
  const found = all.find((one) => one.name_id === wanted || id(one) === wanted)
  if (found !== undefined) return id(found)
  const names = all.map(({ name_id }) => name_id)
  throw new Failure(`There is no ${what} ${wanted}.${didYouMean(wanted, names)}`)
}

export async function setTarget(terminal: Terminal, name: string, options: TargetOptions): Promise<void> {
  const { kind, events, server, topic, chat, to, pause = false, keep = false, newKey = false } = options
  const secret = kind === 'ntfy' && options.accessToken === true ? ACCESS_TOKEN : SECRETS[kind]
  const value = secret === null || keep ? null : await terminal.readSecret(secret.what)
  const { session, scope, where } = await openScope(terminal, options)
  const body = {
    ...{ ...scope, name, kind, events },
    ...(secret === null || value === null ? {} : { [secret.member]: value }),
    ...(server === undefined ? {} : { url: server }),
    ...(topic === undefined ? {} : { topic }),
    ...(chat === undefined ? {} : { chat_id: chat }),
    ...(to === undefined ? {} : { addresses: to }),
    ...(await filtersOf(session, { ...scope, name }, options)),
    ...(pause ? { is_paused: true } : {}),
    ...(newKey ? { new_signing_key: true } : {}),
  }
  const result = await session.client.call(putNoticeTarget, { body })
  if (terminal.is_json) return terminal.json(result)
  terminal.note(`Set ${name} of ${where}. Test it: muster notices test ${name}`)
  if (result.signing_key !== undefined) {
    terminal.note('Its notices are signed with this key, which is not shown again:')
    terminal.print(result.signing_key)
  }
}

export async function removeTarget(
  terminal: Terminal,
  name: string,
  options: NoticeOptions & RemovalOptions,
): Promise<void> {
  const { session, where, params } = await openTarget(terminal, name, options)
  await confirmRemoval(terminal, `Remove ${name} from ${where}? Notices that wait are not sent.`, options)
  await session.client.call(deleteNoticeTarget, { params })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${name} from ${where}.`)
}

export async function testTarget(terminal: Terminal, name: string, options: NoticeOptions): Promise<void> {
  const { session, params } = await openTarget(terminal, name, options)
  const { delivery } = await session.client.call(testNoticeTarget, { params })
  const { state, status, response = '' } = delivery
  if (terminal.is_json) terminal.json({ delivery })
  else if (state === 'delivered') terminal.note(`${name} took the test notice.`)
  if (state === 'delivered') return
  const said = status === undefined ? response : `${status} ${response}`
  throw new Failure(`${name} did not take the test notice: ${said}`, {
    remedy: `Set it again: muster notices set ${name}`,
  })
}

export async function listDeliveries(
  terminal: Terminal,
  name: string,
  options: NoticeOptions & { lines: number },
): Promise<void> {
  const { session, params, where } = await openTarget(terminal, name, options)
  const query = { limit: options.lines }
  const { deliveries, is_cut } = await session.client.call(listNoticeDeliveries, { params, query })
  terminal.note(`Last notices of ${name} of ${where}`)
  if (terminal.is_json) return terminal.json({ deliveries, is_cut })
  printTable(
    terminal,
    deliveries,
    [
      { title: 'ID', text: ({ notice_id }) => notice_id, is_whole: true },
      { title: 'WHEN', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'STATE', text: ({ state }) => state },
      { title: 'TRIED', text: ({ attempt_count }) => String(attempt_count) },
      { title: 'RESPONSE', text: ({ status, response = '' }) => `${status ?? ''} ${response}`.trim() },
      { title: 'NOTICE', text: ({ title }) => title },
    ],
    'There is no notice yet.',
  )
}

export async function resend(
  terminal: Terminal,
  name: string,
  notice_id: string,
  options: NoticeOptions,
): Promise<void> {
  const { session, target } = await openTarget(terminal, name, options)
  await session.client.call(resendNotice, { params: { target_id: target.target_id, notice_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`${name} gets the notice again, after those that wait.`)
}
