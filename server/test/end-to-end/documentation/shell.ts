// One bash for all blocks of a page, as a reader has: variables, functions and the folder last from block to block.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { personsPath } from '../../support/persons-path.ts'

/** A block that waits for what never happens must not hang the test. */
const BLOCK_MS_MAX = 120_000

/** HOME is empty in these tests, but packages come from where this machine gets them. */
const REGISTRY = {
  npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
  npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
  npm_config_update_notifier: 'false',
  // A request that hangs is made again, long before the block's time is up.
  npm_config_fetch_timeout: '15000',
  npm_config_fetch_retry_mintimeout: '1000',
  npm_config_fetch_retry_maxtimeout: '5000',
  NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS,
  HTTPS_PROXY: process.env.HTTPS_PROXY,
}

export type Shell = {
  /** Runs a block and resolves to what it printed. Rejects with the same when a command of the block fails. */
  run: (name: string, block: string) => Promise<string>
}

export function openShell(t: TestContext, folder: string, env: Record<string, string>): Shell {
  const blocks = mkdtempSync(join(tmpdir(), 'muster-blocks-'))
  const bash = spawn('bash', ['-euo', 'pipefail'], {
    cwd: folder,
    env: { PATH: personsPath(), ...REGISTRY, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    // A group of its own, so that every command that a block started ends with its bash: they share the output, and a
    // block has failed only when that has ended.
    detached: true,
  })
  const end = (): void => endGroup(bash.pid!)
  bash.once('exit', end)
  t.after(() => {
    end()
    rmSync(blocks, { recursive: true })
  })
  let output = ''
  let onOutput = (): void => {}
  bash.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    onOutput()
  })
  // One pipe for both: what a block writes to standard error comes before its end.
  bash.stdin.write('exec 2>&1\n')
  const ended = new Promise<string>((resolve) => bash.once('close', (code, signal) => resolve(String(signal ?? code))))

  return {
    async run(name, block) {
      const end_mark = `end of block ${randomUUID()}`
      const file = join(blocks, `${randomUUID()}.sh`)
      writeFileSync(file, `${block}\n`)
      output = ''
      const done = new Promise<null>((resolve) => {
        onOutput = () => output.includes(end_mark) && resolve(null)
      })
      const timer = setTimeout(end, BLOCK_MS_MAX)
      bash.stdin.write(`source ${file} < /dev/null; echo '${end_mark}'\n`)
      const failure = await Promise.race([done, ended])
      clearTimeout(timer)
      if (failure !== null) throw new Error(`${name}: bash ended with ${failure}:\n${output}`)
      return output.replace(`${end_mark}\n`, '')
    },
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // All of its processes have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
