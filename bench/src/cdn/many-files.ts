// A page of many small files in Chromium, over a round trip of 40 ms: HTTP/2 of the edge against its HTTP/1.1, and against
// HTTP/2 of nginx with the same files. A relay in this process delays each piece in both directions. Each load has a browser
// context of its own, so nothing is cached and every connection is new.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type Browser, chromium } from 'playwright-core'
import { chromiumPath } from '../hub/browser.ts'
import { median } from '../load.ts'
import { verdict } from '../report.ts'

const FILES = 300
const FILE_BYTES = 4_096
const ROUND_TRIP_MS = 40
const ROUNDS = 5
const WARM_UP_ROUNDS = 1
const HTTP1_RATIO_MAX = 0.5
const NGINX_RATIO_MAX = 1.1
const ARGUMENTS = ['--no-sandbox', '--disable-background-networking', '--disable-quic']

/** A script of the page: the milliseconds from the navigation to the last file, and the protocol of the files. */
const PAGE = `<script>
globalThis.loaded = Promise.all(
  Array.from({ length: ${FILES} }, (_, index) => fetch('many/' + index + '.bin').then((response) => response.arrayBuffer())),
).then((all) => ({
  ms: performance.now(),
  bytes: all.reduce((sum, { byteLength }) => sum + byteLength, 0),
  protocol: performance.getEntriesByType('resource')[0].nextHopProtocol,
}))
</script>`

/** `makeBytes`: the content of one file. */
export function manyFiles(makeBytes: (length: number) => Buffer): [path: string, bytes: Buffer][] {
  const files = Array.from({ length: FILES }, (_, index): [string, Buffer] => [
    `many/${index}.bin`,
    makeBytes(FILE_BYTES),
  ])
  return [['many.html', Buffer.from(PAGE)], ...files]
}

type Contender = { name: 'edge h2' | 'edge http/1.1' | 'nginx h2'; browser: Browser; port: number; protocol: string }

/** `ports`: those of the relays' targets, which speak TLS. */
export async function compareManyFiles(host: string, ports: { edge: number; nginx: number }): Promise<void> {
  const relays = { edge: await delayed(ports.edge), nginx: await delayed(ports.nginx) }
  const launch = (more: string[]): Promise<Browser> =>
    chromium.launch({ executablePath: chromiumPath(), args: [...ARGUMENTS, ...more] })
  const [plain, without_h2] = [await launch([]), await launch(['--disable-http2'])]
  try {
    const contenders: Contender[] = [
      { name: 'edge h2', browser: plain, port: relays.edge.port, protocol: 'h2' },
      { name: 'edge http/1.1', browser: without_h2, port: relays.edge.port, protocol: 'http/1.1' },
      { name: 'nginx h2', browser: plain, port: relays.nginx.port, protocol: 'h2' },
    ]
    const times = new Map(contenders.map(({ name }) => [name, [] as number[]]))
    for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
      for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const ms = await load(contender, host)
        if (round >= WARM_UP_ROUNDS) times.get(contender.name)!.push(ms)
      }
    }
    console.log(
      `\n  a page of ${FILES} files of ${FILE_BYTES} bytes over ${ROUND_TRIP_MS} ms: median of ${ROUNDS} loads`,
    )
    console.log(`  ${[...times].map(([name, all]) => `${name} ${Math.round(median(all))} ms`).join(', ')}`)
    const ratioTo = (name: Contender['name']): number =>
      median(times.get('edge h2')!.map((ms, round) => ms / times.get(name)![round]!))
    verdict('HTTP/2 / HTTP/1.1 of the edge', ratioTo('edge http/1.1'), HTTP1_RATIO_MAX, 'at most')
    verdict('HTTP/2 of the edge / of nginx', ratioTo('nginx h2'), NGINX_RATIO_MAX, 'at most')
  } finally {
    await Promise.all([plain.close(), without_h2.close()])
    for (const relay of Object.values(relays)) relay.close()
  }
}

async function load({ name, browser, port, protocol }: Contender, host: string): Promise<number> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  try {
    const page = await context.newPage()
    await page.goto(`https://${host}:${port}/many.html`, { waitUntil: 'commit' })
    const loaded: { ms: number; bytes: number; protocol: string } = await page.evaluate('loaded')
    if (loaded.bytes !== FILES * FILE_BYTES) throw new Error(`${name}: ${loaded.bytes} bytes have arrived`)
    if (loaded.protocol !== protocol) throw new Error(`${name}: the page was loaded over ${loaded.protocol}`)
    return loaded.ms
  } finally {
    await context.close()
  }
}

/**
 * Forwards connections to the port, each piece half a round trip later, and a new connection one round trip later. Timers of
 * one length end in their order, so pieces stay in order.
 */
async function delayed(target: number): Promise<{ port: number; close: () => void }> {
  const sockets = new Set<Socket>()
  const forward = (from: Socket, to: Socket): void => {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('error', () => {})
    from.on('data', (piece) => setTimeout(() => void to.write(piece), ROUND_TRIP_MS / 2))
    from.on('close', () => {
      sockets.delete(from)
      setTimeout(() => to.destroy(), ROUND_TRIP_MS / 2)
    })
  }
  const server = createServer({ pauseOnConnect: true }, (near) => {
    setTimeout(() => {
      const far = connect(target, '127.0.0.1')
      forward(near, far)
      forward(far, near)
      near.resume()
    }, ROUND_TRIP_MS)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
