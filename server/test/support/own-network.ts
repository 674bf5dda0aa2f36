// Tests that need addresses and packet counters of their own run their file once more, in a network namespace that has
// nothing in it but what they put there: loopback, and an interface behind which nobody answers.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { test } from 'node:test'
import { lacking, type Need } from '../run/optional-programs.ts'

const MARK = 'TEST_OWN_NETWORK'

/**
 * Declares the file's tests where they may run; outside, one test that runs them inside, or is skipped aloud. `needs`: of
 * the tests, which are not counted one by one.
 */
export function inOwnNetwork(file: string, declareTests: () => void, needs: readonly Need[] = []): void {
  if (process.env[MARK] !== undefined) {
    openNetwork()
    declareTests()
    return
  }
  test(`in a network of its own: ${basename(file, '.test.ts')}`, async (t) => {
    const missing = whatIsMissing(needs)
    if (missing !== null) return t.skip(missing)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const child = spawn('unshare', ['--net', process.execPath, '--test-reporter=spec', file], {
      env: { ...env, [MARK]: 'yes' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.after(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk
      })
    }
    const [code] = await once(child, 'close')
    t.diagnostic(output)
    if (code !== 0) throw new Error(`The tests inside failed:\n${output}`)
  })
}

function whatIsMissing(needs: readonly Need[]): string | null {
  const missing = lacking('root', 'ip', 'nft', ...needs)
  if (missing !== null) return missing
  try {
    execFileSync('unshare', ['--net', 'nft', 'list', 'tables'], { stdio: 'pipe' })
    return null
  } catch {
    return 'needs network namespaces with packet counters'
  }
}

/** The default route leads to an unused address, so that packets to the outside would be sent and counted. */
function openNetwork(): void {
  ip('link set lo up')
  ip('link add out type veth peer name far')
  ip('link set out up')
  ip('link set far up')
  ip('addr add 192.0.2.2/24 dev out')
  ip('route add default via 192.0.2.1 dev out')
  ip('neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev out')
  ip('-6 addr add 2001:db8:1::2/64 dev out nodad')
  ip('-6 route add default via 2001:db8:1::1 dev out')
  ip('-6 neigh add 2001:db8:1::1 lladdr 02:00:00:00:00:01 dev out')
}

export function ip(command: string): void {
  execFileSync('ip', command.split(' '), { stdio: 'pipe' })
}

/** Counts packets that open a TCP connection to one of these ports, of any address. Returns a function for the number. */
export function countConnects(ports: readonly number[]): () => number {
  const rules = `
    add table inet watch
    add counter inet watch connects
    add chain inet watch output { type filter hook output priority 0; }
    add rule inet watch output tcp dport { ${ports.join(', ')} } tcp flags & (syn|ack) == syn counter name connects`
  execFileSync('nft', ['-f', '-'], { input: rules })
  return () => {
    const told = execFileSync('nft', ['-j', 'list', 'counter', 'inet', 'watch', 'connects'], { encoding: 'utf8' })
    const { nftables } = JSON.parse(told) as { nftables: { counter?: { packets: number } }[] }
    return nftables.find((item) => item.counter !== undefined)!.counter!.packets
  }
}
