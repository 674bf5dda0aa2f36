// Saves an export of the platform, whose address is presigned.
import { createWriteStream, existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Failure } from '../failure.ts'
import type { Terminal } from '../terminal.ts'

const FILE_MODE = 0o600

/** The file appears under its name when it is complete. Throws a Failure. */
export async function downloadFile(
  terminal: Terminal,
  url: string,
  file: string,
): Promise<{ path: string; byte_count: number }> {
  const path = resolve(file)
  // The export begins with the request.
  if (existsSync(path)) throw new Failure(`${path} is there already. Name a new file.`)
  const response = await fetch(url, { signal: terminal.signal })
  if (!response.ok || response.body === null)
    throw new Failure(`The export has failed (status ${response.status}). The log of the platform has the reason.`)
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
      createWriteStream(partial, { mode: FILE_MODE }),
      { signal: terminal.signal },
    )
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    if (terminal.signal.aborted) throw error
    throw new Failure('The export was broken off. The log of the platform has the reason.', { cause: error })
  }
  return { path, byte_count }
}
