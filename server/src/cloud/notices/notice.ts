// A notice as it is stored and sent: what happened, where, and a link to the page of the hub that shows it.
import { type NoticeEvent, visibleText } from '@musterhost/contract'

export type NoticeSeverity = 'error' | 'warning' | 'info'

/** Where something happened, as far as it is known. */
export type NoticePlace = {
  group_id?: string
  game_id?: string
  namespace_id?: string
  lobby_id?: string
  node_id?: string
  region?: string
  ray_id?: string
}

/** `source`: what it is about, the same whenever it is found again. `user_id`: a person, for targets of their groups. */
export type FoundNotice = NoticePlace & {
  source: string
  event: NoticeEvent
  severity: NoticeSeverity
  title: string
  text: string
  ts_ms: number
  /** The last lines of a server. */
  lines?: readonly string[]
  user_id?: string
  /** What it is about began then; targets that are younger do not get it. Absent: `ts_ms`. */
  since_ms?: number
  /** The target that it is about, which does not get it. */
  not_target_id?: string
}

/** As a webhook gets it. `group_name`, `game_name`, `namespace_name`: at the time of the notice. */
export type Notice = NoticePlace & {
  notice_id: string
  event: NoticeEvent | 'test'
  severity: NoticeSeverity
  title: string
  text: string
  ts: string
  platform: string
  url: string
  group_name?: string
  game_name?: string
  namespace_name?: string
  lines?: string[]
}

/** Names by id, of what a notice is about. */
export type NoticeNames = ReadonlyMap<string, string>

/** Characters of the text of a notice, of one line of a server, and lines of a server. */
const TEXT_LENGTH_MAX = 600
const LINE_LENGTH_MAX = 200
const NOTICE_LINES_MAX = 5

/** `origin`: the address of the hub, without a slash at the end. */
export function noticeOf(found: FoundNotice, notice_id: string, origin: string, names: NoticeNames): Notice {
  const { group_id, game_id, namespace_id, lobby_id, node_id, region, ray_id, lines = [] } = found
  const name = (id: string | undefined) => (id === undefined ? undefined : names.get(id))
  const [group_name, game_name, namespace_name] = [group_id, game_id, namespace_id].map(name)
  return {
    notice_id,
    event: found.event,
    severity: found.severity,
    title: cutText(found.title, TEXT_LENGTH_MAX),
    text: cutText(found.text, TEXT_LENGTH_MAX),
    ts: new Date(found.ts_ms).toISOString(),
    platform: origin,
    url: `${origin}${pathOf(found)}`,
    ...present({ group_id, group_name, game_id, game_name, namespace_id, namespace_name }),
    ...present({ lobby_id, node_id, region, ray_id }),
    ...(lines.length === 0
      ? {}
      : { lines: lines.slice(-NOTICE_LINES_MAX).map((line) => cutText(line, LINE_LENGTH_MAX)) }),
  }
}

/** The page of the hub that shows it. */
function pathOf({ event, group_id, game_id, namespace_id, lobby_id, ray_id }: Omit<FoundNotice, 'source'>): string {
  if (game_id !== undefined && namespace_id !== undefined) {
    const namespace = `/games/${game_id}/namespaces/${namespace_id}`
    if (lobby_id !== undefined) return `${namespace}/lobbies/${lobby_id}`
    if (event === 'domain_failing' || event === 'certificate_failing') return `${namespace}/settings`
    if (event.startsWith('deploy_') || event.startsWith('rollout_')) return namespace
    if (ray_id !== undefined) return `/games/${game_id}/rays/${ray_id}`
    return namespace
  }
  if (game_id !== undefined) return event === 'token_made' ? `/games/${game_id}/tokens` : `/games/${game_id}`
  if (group_id !== undefined) return `/groups/${group_id}`
  if (event.startsWith('backup_')) return '/platform/backups'
  if (event === 'job_failing') return '/platform/jobs'
  if (event.startsWith('node_')) return '/platform/nodes'
  return event === 'sign_in_new_place' || event === 'token_made' ? '/platform/audit' : '/platform'
}

/** What a message says besides title and text, as pairs of a word and a value. */
export function factsOf(notice: Notice): [string, string][] {
  const { game_name, game_id, namespace_name, namespace_id, lobby_id, node_id, region, ray_id, group_name } = notice
  const facts: [string, string | undefined][] = [
    ['Group', game_id === undefined ? group_name : undefined],
    ['Game', game_name ?? game_id],
    ['Namespace', namespace_name ?? namespace_id],
    ['Lobby', lobby_id],
    ['Machine', node_id],
    ['Region', region],
    ['Ray', ray_id],
  ]
  return facts.filter((fact): fact is [string, string] => fact[1] !== undefined)
}

/** Without control characters, and at most so long. */
export function cutText(text: string, length_max: number): string {
  const shown = visibleText(text).trim()
  if (shown.length <= length_max) return shown
  // A pair of surrogates is not cut apart.
  const end = shown.slice(0, length_max - 1)
  return `${/[\ud800-\udbff]$/.test(end) ? end.slice(0, -1) : end}…`
}

function present<T extends Record<string, string | undefined>>(members: T): { [K in keyof T]?: string } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: string
  }
}
