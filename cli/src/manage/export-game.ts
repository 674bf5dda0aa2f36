// `muster games export`: all of a game as one file.
import { exportGame as exportOperation } from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { downloadFile } from './download-file.ts'

const MEGABYTE = 1_000_000

export async function exportGame(
  terminal: Terminal,
  name: string,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  const session = await openSession(terminal, { ...options, game: name })
  const { game_id, name_id } = await session.game()
  const { url } = await session.client.call(exportOperation, { params: { game_id } })
  const { path, byte_count } = await downloadFile(terminal, url, file)
  if (terminal.is_json) return terminal.json({ game: name_id, file: path, byte_count })
  terminal.print(`${path} has the game ${name_id} (${(byte_count / MEGABYTE).toFixed(1)} MB).`)
  terminal.note(
    'It has no secrets, tokens and domains. "muster import-game" on the machine of another platform reads it.',
  )
}
