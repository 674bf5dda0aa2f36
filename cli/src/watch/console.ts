// The console of a lobby: lines of standard input go to its server, and its log is shown. The version config must allow it.
import { createInterface } from 'node:readline'
import { writeLobbyInput } from '@musterhost/contract'
import { openNamespace } from '../manage/games.ts'
import type { GlobalOptions } from '../options.ts'
import { createCommandClient } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { findLobbyId } from './lobby-ids.ts'
import { followLobby } from './logs.ts'

/** Ends at Ctrl-D, or with the lines of standard input when it is no terminal. */
export async function openConsole(terminal: Terminal, wanted: string, options: GlobalOptions): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const lobby_id = await findLobbyId(session.client, params, wanted)
  terminal.note(`Console of lobby ${lobby_id} of ${where}`)
  const sendAll = async (): Promise<void> => {
    const input = createInterface({ input: process.stdin, terminal: false })
    const close = (): void => input.close()
    terminal.signal.addEventListener('abort', close, { once: true })
    for await (const text of input) {
      await session.client.call(writeLobbyInput, { params: { game_id: params.game_id, lobby_id }, body: { text } })
    }
    terminal.signal.throwIfAborted()
  }
  if (!terminal.is_interactive) {
    await sendAll()
    if (terminal.is_json) terminal.json({})
    return
  }
  terminal.note('Type a line and press Enter. Ctrl-D ends the console; the lobby runs on.')
  const ended = new AbortController()
  const signal = AbortSignal.any([terminal.signal, ended.signal])
  const client = createCommandClient(session.url, session.token, signal)
  const log = followLobby(terminal, { ...session, client }, params, lobby_id)
  // The race below reports its failure; afterwards only the abort of its last call is left.
  log.catch(() => undefined)
  try {
    await Promise.race([sendAll(), log])
  } finally {
    ended.abort()
    process.stdin.destroy()
  }
}
