// The api's side of the program of backups: starts it, hands it its work, and reads its reply.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { BackupReply, BackupTask, BackupWork, PackTask } from '../../backup/program.ts'
import type { Context } from '../../context.ts'
import { readBounded } from '../../flow/read-bounded.ts'

const PROGRAM = fileURLToPath(new URL('../../backup/program.ts', import.meta.url))
/** Variables that the program gets of this process. */
const ENVIRONMENT = ['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE', 'NODE_EXTRA_CA_CERTS'] as const
/** Bytes of a reply, and of its standard error: a line for each finding, and for each backup of a repository. */
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024
/** Characters of its standard error that a failure names: the last line. */
const LINE_LENGTH_MAX = 300

/** Throws an Error with a sentence for people when it fails, and when `signal` ends it. */
export async function runBackupTask(
  { config, log }: Context,
  task: BackupTask,
  signal: AbortSignal,
): Promise<Exclude<BackupReply, { kind: 'failed' }>> {
  const { child, exited, end } = startProgram({ task, config })
  signal.addEventListener('abort', end, { once: true })
  try {
    if (signal.aborted) end()
    const [output, errors, how] = await Promise.all([read(child.stdout), read(child.stderr), exited])
    if (output === '') {
      const line = errors.trim().split('\n').at(-1)?.slice(0, LINE_LENGTH_MAX) ?? ''
      if (!signal.aborted) log.warn({ errors, how }, 'the process of a backup failed')
      throw new Error(`The process of the backup ended with ${how}. ${line}`.trim())
    }
    const reply = JSON.parse(output) as BackupReply
    if (reply.kind === 'failed') throw new BackupFailure(reply.message)
    return reply
  } finally {
    signal.removeEventListener('abort', end)
    if (child.exitCode === null) end()
  }
}

/** The bytes of a game file. Throws an Error where it cannot be made, also after the first bytes. */
export async function* gameFileBytes({ config, log }: Context, task: PackTask): AsyncGenerator<Uint8Array> {
  const { child, exited, end } = startProgram({ task, config })
  const errors = read(child.stderr)
  try {
    yield* child.stdout as AsyncIterable<Uint8Array>
    const how = await exited
    if (how === 'code 0') return
    log.warn({ errors: await errors, how }, 'the process of an export failed')
    throw new Error(`The process of the export ended with ${how}.`)
  } finally {
    if (child.exitCode === null) end()
  }
}

function startProgram(work: BackupWork) {
  const env = Object.fromEntries(ENVIRONMENT.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
  const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  // A process that ends before it has read its work reports so by its exit.
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(work))
  const exited = new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, by) => resolve(by === null ? `code ${code}` : by))
  })
  return { child, exited, end: (): void => void child.kill('SIGTERM') }
}

async function read(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const tooLong = () => new Error(`The process of the backup wrote more than ${OUTPUT_BYTES_MAX} bytes.`)
  return (await readBounded(stream, OUTPUT_BYTES_MAX, tooLong)).toString()
}

/** What an operator can mend: the message has the remedy. */
export class BackupFailure extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BackupFailure'
  }
}
