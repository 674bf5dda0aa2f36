// A second machine as a network namespace: it can open connections to the platform's address, and nothing can open one to it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { MUSTER } from '../run/built-programs.ts'
import { ip } from '../support/own-network.ts'
import { until } from '../support/until.ts'

export const PLATFORM_ADDRESS = '10.77.0.1'
const MACHINE_ADDRESS = '10.77.0.2'

const CUT_TABLE = 'link_cut'

export type Machine = {
  /** Runs `muster` there until it is ready. Rejects with what it printed when it ends before. */
  muster: (args: readonly string[], env: Record<string, string>) => Promise<Running>
}
export type Running = { output: () => string; stop: (signal: NodeJS.Signals) => Promise<number | null> }

/** Called inside a network namespace of the test (inOwnNetwork). */
export async function startMachine(t: TestContext): Promise<Machine> {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
  t.after(() => holder.kill('SIGKILL'))
  await until('the namespace of the second machine', () => namespaceOf(holder.pid!) !== namespaceOf(process.pid))
  const inside = (...args: string[]): void =>
    void execFileSync('nsenter', ['-t', String(holder.pid), '-n', ...args], { stdio: 'pipe' })
  ip('link add near type veth peer name away')
  t.after(() => ip('link delete near'))
  ip(`link set away netns ${holder.pid}`)
  ip(`addr add ${PLATFORM_ADDRESS}/30 dev near`)
  ip('link set near up')
  inside('ip', 'link', 'set', 'lo', 'up')
  inside('ip', 'addr', 'add', `${MACHINE_ADDRESS}/30`, 'dev', 'away')
  inside('ip', 'link', 'set', 'away', 'up')
  const rules = `
    table inet outgoing {
      chain input {
        type filter hook input priority 0; policy accept;
        iifname "away" ct state new drop
      }
    }`
  execFileSync('nsenter', ['-t', String(holder.pid), '-n', 'nft', '-f', '-'], { input: rules })
  return { muster: (args, env) => run(t, holder.pid!, args, env) }
}

function namespaceOf(pid: number): string | null {
  try {
    return execFileSync('readlink', [`/proc/${pid}/ns/net`], { encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return null
  }
}

/** Breaks every connection between the two machines, and refuses new ones until the returned function is called. */
export function cutLink(): () => void {
  const reset = (direction: string): string => `meta l4proto tcp ${direction} "near" reject with tcp reset`
  const rules = `
    table inet ${CUT_TABLE} {
      chain input {
        type filter hook input priority 0
        ${reset('iifname')}
      }
      chain output {
        type filter hook output priority 0
        ${reset('oifname')}
      }
    }`
  execFileSync('nft', ['-f', '-'], { input: rules })
  return () => void execFileSync('nft', ['delete', 'table', 'inet', CUT_TABLE])
}

async function run(
  t: TestContext,
  holder_pid: number,
  args: readonly string[],
  env: Record<string, string>,
): Promise<Running> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const inside = ['-t', String(holder_pid), '-n', process.execPath, MUSTER, ...args]
  const child: ChildProcess = spawn('nsenter', inside, {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  const ready = Promise.withResolvers<void>()
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
      if (/^ready /m.test(output)) ready.resolve()
    })
  }
  const ended = once(child, 'close') as Promise<[number | null]>
  void ended.then(([code]) => ready.reject(new Error(`muster ${args[0]} ended with ${code}:\n${output}`)))
  await ready.promise
  return {
    output: () => output,
    async stop(signal) {
      child.kill(signal)
      return (await ended)[0]
    },
  }
}
