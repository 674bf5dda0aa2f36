// Opens an address in the browser. The caller has printed it, for a machine without one.
import { spawn } from 'node:child_process'
import type { Terminal } from './terminal.ts'

/** How long the system's command may take to fail. One that runs longer has found a browser. */
const FAILURE_MS_MAX = 2_000

/** Resolves when a browser was found, or the lack of one was noted. */
export async function openBrowser(terminal: Terminal, url: string): Promise<void> {
  const [program = '', ...args] = commandOf(url)
  const is_open = await new Promise<boolean>((resolve) => {
    const child = spawn(program, args, { detached: true, stdio: 'ignore' })
    const timer = setTimeout(() => resolve(true), FAILURE_MS_MAX)
    child.once('error', () => resolve(false))
    child.once('exit', (code) => {
      clearTimeout(timer)
      resolve(code === 0)
    })
    child.unref()
  })
  if (!is_open) terminal.note('No browser could be started: open the address yourself.')
}

function commandOf(url: string): string[] {
  if (process.platform === 'darwin') return ['open', url]
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '', url]
  return ['xdg-open', url]
}
