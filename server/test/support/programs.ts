// Programs of Debian's packages that a test starts beside the platform.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import type { TestContext } from 'node:test'

const OUTPUT_CHARACTERS_MAX = 4_096

/** Kills the program when the test is over, and removes its folder. */
export function endWithTest(t: TestContext, child: ChildProcess, folder: string): void {
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(folder, { recursive: true, force: true })
  })
}

/** The last of what the program wrote. */
export function outputOf({ stdout, stderr }: ChildProcess): () => string {
  let output = ''
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-OUTPUT_CHARACTERS_MAX)
    })
  }
  return () => output
}
