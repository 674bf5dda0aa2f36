// `muster games export`: all of a game as one file.
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportGame as exportOperation } from '@musterhost/contract'
import { Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const MEGABYTE = 1_000_000

/** The file appears under its name when it is complete. */
export async function exportGame(
  terminal: Terminal,
  name: string,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  const path = resolve(file)
  if (existsSync(path)) throw new Failure(`${path} is there already. Name a new file.`)
  const session = await openSession(terminal, { ...options, game: name })
  const { game_id, name_id } = await session.game()
  const { url } = await session.client.call(exportOperation, { params: { game_id } })
  const response = await fetch(url, { signal: terminal.signal })
  if (!response.ok || response.body === null)
    throw new Failure(
      `The game cannot be exported (status ${response.status}). The log of the platform has the reason.`,
    )
  const partial = `${path}.partial`
  let byte_count = 0
  try {
    await pipeline(
      Readable.fromWeb(response.body),
      async function* (body: AsyncIterable<Uint8Array>) {
        for await (const chunk of body) {
          byte_count += chunk.length
          yield chunk
        }
      },
      createWriteStream(partial, { mode: 0o600 }),
      { signal: terminal.signal },
    )
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    if (terminal.signal.aborted) throw error
    throw new Failure('The export was broken off. The log of the platform has the reason.', { cause: error })
  }
  if (terminal.is_json) return terminal.json({ game: name_id, file: path, byte_count })
  terminal.print(`${path} has the game ${name_id} (${(byte_count / MEGABYTE).toFixed(1)} MB).`)
  terminal.note(
    'It has no secrets, tokens and domains. "muster import-game" on the machine of another platform reads it.',
  )
}
