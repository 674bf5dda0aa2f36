// Whether this machine makes terminals for lobbies (contract/src/lobby-terminal.ts). `script` runs outside the sandbox as the
// lobby's user, so that container images need no such program.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inTerminal } from '@musterhost/contract'
import { PROGRAM_ENV } from '../../program-env.ts'
import type { ProgramFault } from '../programs/find-program.ts'

/** Exit code of the trial run, which `script` must pass on. */
const PROBE_CODE = 7
/** Time limit of the trial run. */
const PROBE_MS_MAX = 10_000
/** Characters of an error of `script` that are shown. */
const SHOWN_MAX = 200
const NEEDS_SCRIPT =
  'The version config has `terminal: true`, and this machine makes no terminal: its program `script` of util-linux is missing or does not work. Its operator must install it (Debian: bsdutils; Fedora: util-linux-script; Alpine: util-linux-misc), or the version leaves `terminal` out.'

/** Tries `script` out as lobbies will use it. `user`: the command that changes the user. Null: it works here. */
export async function terminalFault(user: readonly string[]): Promise<ProgramFault | null> {
  const [program = '', ...args] = [...user, ...inTerminal(['/bin/sh', '-c', `test -t 1 && exit ${PROBE_CODE}`])]
  let shown = ''
  try {
    await promisify(execFile)(program, args, { env: PROGRAM_ENV, timeout: PROBE_MS_MAX })
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string }
    if (code === PROBE_CODE) return null
    shown = ` ${stderr.trim().slice(0, SHOWN_MAX)}`.trimEnd()
  }
  return { refused: 'not_started', message: `${NEEDS_SCRIPT}${shown}` }
}
