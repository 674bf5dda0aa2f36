// The standard input of a lobby whose version config allows it: a named pipe in a folder that no lobby can read. The lobby
// holds it open for reading and writing, so its input never ends, and a crash of the runner does not break it. The pipe has
// no reader once the last process of the lobby has ended; then it is removed.
import { closeSync, constants, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { INPUT_WAIT_MS_MAX, type InputResult } from '../../../lobby-logs/lobby-logs.ts'
import { codeOf, isGone } from '../../../node/procfs.ts'

const WRITE_POLL_MS = 50
/** Bytes of one line with its newline. The system writes up to so many whole or not at all (PIPE_BUF). */
const LINE_BYTES_MAX = 4_096

export function makeInputPipesFolder(lobbies_folder: string): void {
  mkdirSync(inputPipesFolder(lobbies_folder), { recursive: true, mode: 0o700 })
}

export const inputPipe = (lobbies_folder: string, lobby_id: string): string =>
  join(inputPipesFolder(lobbies_folder), lobby_id)

const inputPipesFolder = (lobbies_folder: string): string => join(lobbies_folder, '.input-pipes')

/** Writes a line, and waits while the pipe is full. `onWritten` is called at once after the write. */
export async function writeInput(path: string, text: string, onWritten: () => void): Promise<InputResult> {
  const line = Buffer.from(`${text}\n`)
  if (line.length > LINE_BYTES_MAX) throw new Error('A line of input is longer than is written at once.')
  const end_ms = performance.now() + INPUT_WAIT_MS_MAX
  for (;;) {
    const result = writeNow(path, line)
    if (result === 'written') onWritten()
    if (result !== 'not_read' || performance.now() >= end_ms) return result
    await sleep(WRITE_POLL_MS)
  }
}

export function removeInputPipe(path: string): void {
  rmSync(path, { force: true })
}

function writeNow(path: string, line: Buffer): InputResult {
  let fd: number
  try {
    fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    // There is no pipe, or no process reads it.
    if (isGone(error) || codeOf(error) === 'ENXIO') return 'not_running'
    throw error
  }
  try {
    writeSync(fd, line)
    return 'written'
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return 'not_read'
    // The last reader has ended since the pipe was opened.
    if (codeOf(error) === 'EPIPE') return 'not_running'
    throw error
  } finally {
    closeSync(fd)
  }
}
