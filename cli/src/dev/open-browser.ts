// Opens an address in the browser. It is printed too, for a machine without one.
import { spawn } from 'node:child_process'
import type { Terminal } from '../terminal.ts'

export async function openBrowser(terminal: Terminal, url: string): Promise<void> {
  terminal.note(`open ${url}`)
  const [program, ...args] = commandOf(url)
  await new Promise<void>((resolve) => {
    const child = spawn(program!, args, { detached: true, stdio: 'ignore' })
    child.once('error', () => {
      terminal.note('no browser was found; open the address by hand')
      resolve()
    })
    child.once('spawn', resolve)
    child.unref()
  })
}

function commandOf(url: string): string[] {
  if (process.platform === 'darwin') return ['open', url]
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '', url]
  return ['xdg-open', url]
}
