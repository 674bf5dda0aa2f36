// What the platform says about the end of a server, where its own lines or its exit code point to a mistake that many make.
import type { Exit } from './drivers/driver.ts'
import { rootHint } from './root-hint.ts'

/** As systems and runtimes name it, in lower case. */
const READ_ONLY = ['read-only file system', 'readonly file system', 'erofs']
const READ_ONLY_HINT =
  'The build is read-only for the server. Let it write into the folder that HOME names, or copy there what it changes.'
const FINISHED_HINT =
  'The server ended with exit code 0, and its lobby with it. One that continues in the background must stay in the foreground: most have an option for that. One that ends when its standard input ends needs `standard_input: true` in the docker block.'

/** A sentence for the log of a lobby; null when nothing is known. `is_ready`: whether its server was ready once. */
export function endHint(
  lines: readonly string[],
  { reason, exit_code }: Pick<Exit, 'reason' | 'exit_code'>,
  is_ready: boolean,
): string | null {
  const has_failed = (reason === 'exit' || reason === 'signal') && exit_code !== 0
  if (has_failed && lines.some(isReadOnly)) return READ_ONLY_HINT
  if (is_ready) return null
  return rootHint(lines) ?? (reason === 'exit' && exit_code === 0 ? FINISHED_HINT : null)
}

function isReadOnly(line: string): boolean {
  const text = line.toLowerCase()
  return READ_ONLY.some((words) => text.includes(words))
}
