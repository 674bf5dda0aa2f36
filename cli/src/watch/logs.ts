// Logs of lobbies: the last lines of both streams of one lobby, or of all that run, and then the lines that follow.
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  exportLobbyLogs,
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
  LOG_LINES_MAX,
  listNamespaceLobbies,
} from '@musterhost/contract'
import { visibleText } from '@musterhost/contract/visible-text'
import { EXIT, Failure } from '../failure.ts'
import { openNamespace } from '../manage/games.ts'
import type { GlobalOptions } from '../options.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { type LobbyFilter, requireKnown } from './lobby-filter.ts'
import { findLobbyId, shortIds } from './lobby-ids.ts'
import { exportedLines, isAtLeast, type Level, type LobbyLogLine, lastOf, type StreamName } from './log-lines.ts'

export type LogOptions = GlobalOptions &
  LobbyFilter & {
    lobby?: string
    follow?: boolean
    since?: number
    until?: number
    lines: number
    filter?: string
    level?: Level
  }

type Params = { game_id: string; namespace_id: string }

const STREAMS: readonly StreamName[] = ['std_out', 'std_err']
/** Lobbies whose logs one command shows. */
const LOBBIES_MAX = 32
/** Lines that a console begins with. */
const CONSOLE_LINES = 20
/** How often a follower looks for new lobbies. */
const LOBBIES_PAUSE_MS = 3000

export async function showLogs(terminal: Terminal, options: LogOptions): Promise<void> {
  const matches = createMatch(options)
  const { session, params, where } = await openNamespace(terminal, options)
  const lobby_ids = await chooseLobbies(terminal, session, params, options)
  terminal.note(
    `Logs of ${lobby_ids.length === 1 ? `lobby ${lobby_ids[0]}` : `${lobby_ids.length} lobbies`} of ${where}`,
  )
  const view = new LogView(terminal, session, params, matches)
  await view.showLast(lobby_ids, options)
  if (options.follow !== true) return
  const more = async (): Promise<string[]> =>
    options.lobby === undefined ? runningLobbies(session, params, options) : lobby_ids
  await view.follow(more, options.lobby === undefined)
}

/** Prints the last lines of a lobby, and then those that follow until its log ends. */
export async function followLobby(
  terminal: Terminal,
  session: Session,
  params: Params,
  lobby_id: string,
): Promise<void> {
  const view = new LogView(terminal, session, params, () => true)
  await view.showLast([lobby_id], { lines: CONSOLE_LINES })
  await view.follow(async () => [lobby_id], false)
}

type Match = (line: LobbyLogLine) => boolean

class LogView {
  readonly #terminal: Terminal
  readonly #session: Session
  readonly #params: Params
  readonly #matches: Match
  /** Where each stream goes on: its last watch index. */
  readonly #positions = new Map<string, string>()
  readonly #followed = new Set<string>()
  #known: string[] = []
  /** Whether a stream that was read may get more lines. */
  #has_open = false

  constructor(terminal: Terminal, session: Session, params: Params, matches: Match) {
    this.#terminal = terminal
    this.#session = session
    this.#params = params
    this.#matches = matches
  }

  /** Prints the last matching lines of these lobbies, in the order of time. */
  async showLast(
    lobby_ids: readonly string[],
    options: Pick<LogOptions, 'lines' | 'since' | 'until' | 'filter' | 'level'>,
  ): Promise<void> {
    this.#known = [...lobby_ids]
    const is_whole =
      options.since !== undefined ||
      options.until !== undefined ||
      options.filter !== undefined ||
      options.level !== undefined
    const lines: LobbyLogLine[] = []
    for (const lobby_id of lobby_ids) {
      for (const stream of STREAMS) {
        const last = await this.#last(lobby_id, stream)
        const all = is_whole || (options.lines > LOG_LINES_MAX && last.length === LOG_LINES_MAX)
        lines.push(...(all ? await this.#whole(lobby_id, stream, options.lines) : last))
      }
    }
    const shown = lines
      .filter(this.#matches)
      .sort((one, other) => one.ts.localeCompare(other.ts))
      .slice(-options.lines)
    for (const line of shown) this.#print(line)
    if (shown.length > 0) return
    const nothing = this.#has_open ? 'Nothing was written yet.' : 'Nothing was written.'
    this.#terminal.note(is_whole ? 'No line matches.' : nothing)
  }

  /** Prints lines as they are written. Ends when all logs have ended, unless new lobbies may come. */
  async follow(more: () => Promise<string[]>, has_new: boolean): Promise<void> {
    const following = new Set<Promise<void>>()
    const failed = new AbortController()
    const followAll = (lobby_ids: readonly string[]): void => {
      for (const lobby_id of lobby_ids) {
        if (this.#followed.has(lobby_id) || this.#followed.size >= LOBBIES_MAX) continue
        this.#followed.add(lobby_id)
        if (!this.#known.includes(lobby_id)) this.#known.push(lobby_id)
        for (const stream of STREAMS) {
          const one = this.#followStream(lobby_id, stream)
          following.add(one)
          one.then(
            () => following.delete(one),
            (error: unknown) => failed.abort(error),
          )
        }
      }
    }
    followAll(await more())
    while (has_new) {
      if (failed.signal.aborted) throw failed.signal.reason
      await sleep(LOBBIES_PAUSE_MS, undefined, { signal: this.#terminal.signal })
      followAll(await more())
    }
    await Promise.all(following)
  }

  async #followStream(lobby_id: string, stream: StreamName): Promise<void> {
    for (;;) {
      const watch_index = this.#positions.get(`${lobby_id}/${stream}`)
      const query = { stream, format: 'text' as const, ...(watch_index === undefined ? {} : { watch_index }) }
      const response = await this.#session.client.call(getLobbyLogs, {
        params: { game_id: this.#params.game_id, lobby_id },
        query,
      })
      this.#positions.set(`${lobby_id}/${stream}`, response.watch.index)
      for (const line of linesOf(lobby_id, stream, response)) if (this.#matches(line)) this.#print(line)
      if (response.is_complete) return
    }
  }

  async #last(lobby_id: string, stream: StreamName): Promise<LobbyLogLine[]> {
    const params = { game_id: this.#params.game_id, lobby_id }
    const response = await this.#session.client.call(getLobbyLogs, { params, query: { stream, format: 'text' } })
    this.#positions.set(`${lobby_id}/${stream}`, response.watch.index)
    this.#has_open ||= !response.is_complete
    return linesOf(lobby_id, stream, response)
  }

  /** The last matching lines of the whole log, which is read line by line. */
  async #whole(lobby_id: string, stream: StreamName, count_max: number): Promise<LobbyLogLine[]> {
    const params = { game_id: this.#params.game_id, lobby_id }
    const { url } = await this.#session.client.call(exportLobbyLogs, { params, body: { stream } })
    const response = await fetch(url, { signal: this.#terminal.signal })
    if (!response.ok || response.body === null) {
      throw new Failure(`The log of ${lobby_id} cannot be fetched (status ${response.status}).`)
    }
    const matches = this.#matches
    async function* matching(lines: AsyncIterable<LobbyLogLine>): AsyncGenerator<LobbyLogLine> {
      for await (const line of lines) if (matches(line)) yield line
    }
    return lastOf(matching(exportedLines(Readable.fromWeb(response.body), lobby_id, stream)), count_max)
  }

  #print(line: LobbyLogLine): void {
    if (this.#terminal.is_json) {
      this.#terminal.json(line)
      return
    }
    const lobby = this.#known.length > 1 ? `${this.#terminal.paint('dim', shortIds(this.#known)(line.lobby_id))} ` : ''
    const time = this.#terminal.paint('dim', timeText(line.ts))
    const text = visibleText(line.text)
    this.#terminal.print(`${time} ${lobby}${line.stream === 'std_err' ? this.#terminal.paint('red', text) : text}`)
  }
}

function linesOf(
  lobby_id: string,
  stream: StreamName,
  { lines, timestamps }: { lines: readonly string[]; timestamps: readonly string[] },
): LobbyLogLine[] {
  return lines.map((text, index) => ({ lobby_id, stream, ts: timestamps[index]!, text }))
}

/** Local time with milliseconds; the date is left out, because most logs are of today. --json has it. */
function timeText(ts: string): string {
  const date = new Date(ts)
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return `${day} ${time}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function createMatch({ since, until, filter, level }: LogOptions): Match {
  let pattern: RegExp | null = null
  try {
    pattern = filter === undefined ? null : new RegExp(filter, 'iu')
  } catch (error) {
    throw new Failure(`--filter is not a regular expression: ${(error as Error).message}`, {
      exit_code: EXIT.usage,
      cause: error,
    })
  }
  return (line) => {
    const ms = Date.parse(line.ts)
    if ((since !== undefined && ms < since) || (until !== undefined && ms >= until)) return false
    return (pattern === null || pattern.test(line.text)) && (level === undefined || isAtLeast(line, level))
  }
}

/** The lobby that is named, or those that run, or the last one that ran. */
async function chooseLobbies(
  terminal: Terminal,
  session: Session,
  params: Params,
  options: LogOptions,
): Promise<string[]> {
  if (options.lobby !== undefined) return [await findLobbyId(session.client, params, options.lobby)]
  const running = await runningLobbies(session, params, options)
  if (running.length > LOBBIES_MAX) {
    terminal.note(`${running.length} lobbies run; the logs of the ${LOBBIES_MAX} newest are shown.`)
  }
  if (running.length > 0 || options.follow) return running.slice(-LOBBIES_MAX)
  const region_id = requireKnown(await session.gameFull(), options)
  const { lobbies } = await session.client.call(listNamespaceLobbies, { params })
  const last = lobbies.find(
    (lobby) =>
      (region_id === null || lobby.region_id === region_id) &&
      (options.mode === undefined || lobby.lobby_group_name_id === options.mode),
  )
  if (last === undefined) throw new Failure('No lobby has run yet, so there is no log.')
  terminal.note('No lobby runs now: this is the last one that did.')
  return [last.lobby_id]
}

async function runningLobbies(session: Session, params: Params, options: LobbyFilter): Promise<string[]> {
  const region_id = options.region === undefined ? null : requireKnown(await session.gameFull(), options)
  const { lobbies } = await session.client.call(getAnalyticsMatchmakerLive, { params })
  return lobbies
    .filter(
      (lobby) =>
        (region_id === null || lobby.region_id === region_id) &&
        (options.mode === undefined || lobby.lobby_group_name_id === options.mode),
    )
    .map(({ lobby_id }) => lobby_id)
}
