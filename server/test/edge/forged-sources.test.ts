// Datagrams whose source is forged, for real: an edge, somebody who sends, and a victim, each in a network namespace of
// its own. The sender writes the victim's address into what it sends, and the edge's answers find the victim, who counts.
import assert from 'node:assert'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import {
  connectionsMax,
  REPLY_FACTOR_MAX,
  UDP_SESSIONS_MAX,
  UDP_SESSIONS_PER_CLIENT_MAX,
  UDP_SESSIONS_SHARE,
  UNVALIDATED_BYTES_MAX,
  UNVALIDATED_BYTES_PER_CLIENT_MAX,
} from '../../src/edge/limits.ts'
import { newId } from '../../src/ids.ts'
import { createDatabase } from '../database.ts'
import { until } from '../until.ts'
import { insertRawLobby } from './platform.ts'

const EDGE = '10.77.0.1'
/** All addresses of 10.77.2.0/24 are the victim's machine; the sender claims to be them. */
const VICTIMS = '10.77.2'
const FORGED_PORTS = 64
const REPLIES = 10
/** Descriptors of the edge's that come and go: connections to its database. */
const OTHERS = 12
const LOOK_MS = 50
/** When nothing has come for so long, nothing is under way. */
const QUIET_MS = 300
const TIMEOUT = { timeout: 120_000 }

/** Null: it can be tried here. */
function obstacle(): string | null {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'network namespaces are made by root on Linux'
  const name = `muster-try-${process.pid}`
  spawnSync('ip', ['netns', 'add', name])
  const tried = spawnSync('ip', ['netns', 'exec', name, 'true'])
  if (tried.status !== 0) return 'this machine makes no network namespaces (Debian: iproute2)'
  spawnSync('ip', ['netns', 'delete', name])
  return null
}

const skip = obstacle() ?? false

test('whoever forges a source gets the victim three bytes for one at most, bounded for each victim and in all', {
  ...TIMEOUT,
  skip,
}, async (t) => {
  const world = await openWorld(t)
  const { number } = await world.lobby(`(datagram) => Array.from({ length: ${REPLIES} }, () => datagram)`)

  // One victim: little by little, so that the factor is what bounds it.
  const slow = await world.forge({ number, victims: 1, ports: FORGED_PORTS, count: 256, length: 40 })
  const got = await world.settled()
  assert.strictEqual(slow.bytes, 256 * 40)
  assert.ok(got.bytes > slow.bytes, `what is allowed arrives: ${got.bytes} bytes for ${slow.bytes}`)
  assert.ok(got.bytes <= REPLY_FACTOR_MAX * slow.bytes, `${got.bytes} bytes for ${slow.bytes}`)

  // One victim, as fast as it can be sent.
  const begun = performance.now()
  const fast = await world.forge({ number, victims: 1, ports: FORGED_PORTS, count: 4_000, length: 1_000 })
  const flood = await world.settled()
  const seconds = Math.ceil((performance.now() - begun) / 1_000) + 1
  assert.ok(flood.bytes <= REPLY_FACTOR_MAX * fast.bytes)
  assert.ok(
    flood.bytes <= seconds * UNVALIDATED_BYTES_PER_CLIENT_MAX,
    `${flood.bytes} bytes of ${fast.bytes} in less than ${seconds} s`,
  )

  // A hundred victims at once.
  const many_begun = performance.now()
  const many = await world.forge({ number, victims: 100, ports: 4, count: 8_000, length: 1_000 })
  const all = await world.settled()
  const many_seconds = Math.ceil((performance.now() - many_begun) / 1_000) + 1
  assert.ok(all.victims > 50, `${all.victims} were hit`)
  assert.ok(all.bytes <= REPLY_FACTOR_MAX * many.bytes)
  assert.ok(
    all.bytes <= many_seconds * UNVALIDATED_BYTES_MAX,
    `${all.bytes} bytes of ${many.bytes} in ${many_seconds} s`,
  )
})

test('who has a seat, or shows our cookie, is answered in full; who only sends back what it got is not', {
  ...TIMEOUT,
  skip,
}, async (t) => {
  const world = await openWorld(t)
  const lobby = await world.lobby(
    `(datagram) => Array.from({ length: ${REPLIES} }, () => crypto.getRandomValues(Buffer.alloc(datagram.length)))`,
  )
  const { number } = lobby
  // The victim plays: its first datagrams come back threefold, also once it has echoed one; with cookie and token tenfold.
  const played = await world.play({ lobby, length: 100 })
  assert.strictEqual(played.before, REPLY_FACTOR_MAX * 100)
  assert.strictEqual(played.echoed, REPLY_FACTOR_MAX * 100)
  assert.strictEqual(played.after, REPLIES * 100)
  // To guess what the victim got helps nobody: the forger has never seen it.
  const guessed = await world.forge({ number, victims: 1, ports: FORGED_PORTS, count: 512, length: 40 })
  const got = await world.settled()
  assert.ok(got.bytes <= REPLY_FACTOR_MAX * guessed.bytes)

  await world.seat(lobby, `${VICTIMS}.1`)
  await until('a player of that address is answered in full', async () => {
    const { before } = await world.play({ lobby, length: 100 })
    return before === REPLIES * 100
  })
})

test('where a player token is required, a forged source reaches no lobby, and its victim gets less than was sent', {
  ...TIMEOUT,
  skip,
}, async (t) => {
  const world = await openWorld(t)
  const { number } = await world.lobby(`(datagram) => { process.stdout.write('reached\\n'); return [datagram] }`, {
    require_player_token: true,
  })
  const hello = Buffer.concat([Buffer.from('MUST'), Buffer.from([1]), Buffer.alloc(200, 'x')])
  const wishes = [
    { count: 500, length: 40 },
    { count: 500, text: hello.toString('latin1') },
    { count: 500, text: `MUST\u0003${'c'.repeat(16)}${'t'.repeat(200)}` },
  ]
  for (const wish of wishes) {
    const { bytes } = await world.forge({ number, victims: 20, ports: 8, length: 0, ...wish })
    const got = await world.settled()
    assert.ok(got.bytes < bytes / 4, `${got.bytes} bytes for ${bytes}`)
  }
  assert.deepStrictEqual(world.gameSaid(), [], 'the lobby has seen nothing')
})

test('forged sources are bounded in all and for each client, take no place from who plays, and are forgotten', {
  ...TIMEOUT,
  skip,
}, async (t) => {
  const world = await openWorld(t, { descriptors: 'as many as may be' })
  const lobby = await world.lobby(PLACE)
  const { number } = lobby
  const place = await world.visit(lobby)
  const before = world.descriptors()

  await world.forge({ number, victims: 1, ports: 1_000, count: 1_000, length: 60 })
  const of_one = await world.atRest()
  assert.ok(of_one - before <= UDP_SESSIONS_PER_CLIENT_MAX + OTHERS, `${of_one - before} for one client`)
  assert.ok(of_one - before > UDP_SESSIONS_PER_CLIENT_MAX / 2, 'they have arrived')
  assert.strictEqual(await world.visit(lobby), place)

  const sessions_max = Math.min(UDP_SESSIONS_MAX, Math.floor(connectionsMax() * UDP_SESSIONS_SHARE))
  t.diagnostic(`${sessions_max} sources at once`)
  let most = 0
  const looking = setInterval(() => {
    most = Math.max(most, world.descriptors() - before)
  }, LOOK_MS).unref()
  const ports = Math.ceil(sessions_max / 80)
  await world.forge({ number, victims: 100, ports, count: 100 * ports, length: 60 })
  clearInterval(looking)
  assert.strictEqual(await world.visit(lobby), place, 'who plays has its own socket towards the lobby still')
  assert.ok(most <= sessions_max + OTHERS, `${most} of ${sessions_max}`)
  assert.ok(most > UDP_SESSIONS_PER_CLIENT_MAX, `only ${most} have arrived`)
  await until('those that are silent are forgotten', () => world.descriptors() - before <= OTHERS)
  assert.strictEqual(await world.visit(lobby), place)
})

test('forged sources do not take the descriptors that connections need', { ...TIMEOUT, skip }, async (t) => {
  const world = await openWorld(t, { descriptors: 1_000 })
  const lobby = await world.lobby(PLACE)
  const { number } = lobby
  const place = await world.visit(lobby)
  await world.forge({ number, victims: 100, ports: 20, count: 2_000, length: 60 })
  assert.ok(await world.isServing(), 'a connection is answered')
  assert.strictEqual(await world.visit(lobby), place)
})

/** A game that tells a source apart: by which socket of the edge it comes. */
const PLACE = '(datagram, { port }) => [Buffer.from(port + " " + crypto.randomUUID())]'

type Forgery = { number: number; victims: number; ports: number; count: number; length: number; text?: string }
type World = {
  /** A lobby whose game answers a datagram with what `reply` makes of it, in the edge's namespace. */
  lobby: (reply: string, options?: { require_player_token?: boolean }) => Promise<Lobby>
  gameSaid: () => string[]
  /** Sends as if it came from so many victims and ports in turn. Answers the bytes that were sent. */
  forge: (wish: Forgery) => Promise<{ bytes: number }>
  /** The victim itself: the bytes that it gets for its first datagram, for the one in which it echoes, and with a cookie. */
  play: (wish: { lobby: Lobby; length: number }) => Promise<Played>
  /** The victim as a player who is known by a cookie of the edge: where the lobby sees it. */
  visit: (lobby: Lobby) => Promise<number>
  /** Those that the edge has open, now and when their number rests. */
  descriptors: () => number
  atRest: () => Promise<number>
  /** Whether a connection to the edge's HTTP is answered. */
  isServing: () => Promise<boolean>
  /** What the victims have got since the last time, when no more comes. */
  settled: () => Promise<{ bytes: number; victims: number }>
  seat: (lobby: Lobby, client: string) => Promise<void>
}
type Played = { before: number; echoed: number; after: number }
type Lobby = { lobby_id: string; namespace_id: string; number: number }

async function openWorld(t: TestContext, options: { descriptors?: number | 'as many as may be' } = {}): Promise<World> {
  const tag = `mu${process.pid.toString(36)}${(worlds++).toString(36)}`
  const [edge_ns, sender_ns, victim_ns] = [`${tag}-edge`, `${tag}-sender`, `${tag}-victim`]
  t.after(() => {
    for (const name of [edge_ns, sender_ns, victim_ns]) spawnSync('ip', ['netns', 'delete', name])
  })
  for (const name of [edge_ns, sender_ns, victim_ns]) ip(['netns', 'add', name])
  const links = [sender_ns, victim_ns].flatMap((name, index) => [
    `link add to${index} type veth peer name edge netns ${name}`,
    `link set to${index} up`,
  ])
  // Both reach the edge; only the victim is reached at its addresses, which the sender has given itself as well.
  ip(
    ['-n', edge_ns, '-batch', '-'],
    [
      'link set lo up',
      ...links,
      `address add ${EDGE}/32 dev lo`,
      'address add 10.77.1.254/24 dev to0',
      `address add ${VICTIMS}.254/24 dev to1`,
    ],
  )
  ip(
    ['-n', sender_ns, '-batch', '-'],
    [
      'link set lo up',
      'link set edge up',
      'address add 10.77.1.1/24 dev edge',
      `route add ${EDGE} via 10.77.1.254`,
      `route add local ${VICTIMS}.0/24 dev lo`,
    ],
  )
  const hosts = [200, ...Array.from({ length: 100 }, (_, index) => index + 1)]
  ip(
    ['-n', victim_ns, '-batch', '-'],
    [
      'link set edge up',
      ...hosts.map((host) => `address add ${VICTIMS}.${host}/24 dev edge`),
      `route add ${EDGE} via ${VICTIMS}.254`,
    ],
  )
  // A network that checks where packets come from would not let these through; most let them.
  for (const name of ['all', 'default', 'to0', 'to1', 'lo']) {
    inside(edge_ns, 'sh', ['-c', `echo 0 > /proc/sys/net/ipv4/conf/${name}/rp_filter`])
  }
  // It asks for the edge's hardware address as itself.
  inside(sender_ns, 'sh', ['-c', 'echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce'])

  const { ctx, pid, port: http_port } = await startOwnEdge(t, edge_ns, options)
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length
  const sender = startProgram(t, sender_ns, 'sender')
  const victim = startProgram(t, victim_ns, 'victim')
  await victim.ask({ kind: 'listen', ports: FORGED_PORTS })
  const said: string[] = []
  const tokenOf = ({ lobby_id, namespace_id }: Lobby) =>
    ctx.keys.issue(
      { kind: 'player', player_id: newId(ctx.now()), lobby_id, namespace_id },
      { now_ms: ctx.now(), lifetime_ms: 600_000 },
    )
  return {
    async lobby(reply, options) {
      const game = startProgram(t, edge_ns, 'game', reply, (line) => said.push(line))
      const { port } = await game.ask({ kind: 'open' })
      return insertRawLobby(ctx, 'udp', port, options)
    },
    gameSaid: () => said,
    forge: async (wish) => ({ bytes: (await sender.ask({ kind: 'forge', ...wish })).bytes }),
    play: ({ lobby, length }) =>
      victim.ask({ kind: 'play', number: lobby.number, length, token: tokenOf(lobby) }) as Promise<Played>,
    visit: async (lobby) => (await victim.ask({ kind: 'visit', number: lobby.number, token: tokenOf(lobby) })).port,
    descriptors,
    async atRest() {
      let before = -1
      while (descriptors() !== before) {
        before = descriptors()
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS))
      }
      return before
    },
    isServing: async () => (await victim.ask({ kind: 'connect', number: http_port })).bytes > 0,
    async settled() {
      let before = -1
      for (;;) {
        const now = await victim.ask({ kind: 'count' })
        if (now.bytes === before) break
        before = now.bytes
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS))
      }
      return (await victim.ask({ kind: 'count', is_last: true })) as { bytes: number; victims: number }
    },
    async seat({ lobby_id, namespace_id }, client) {
      const now = new Date()
      await ctx.db
        .insertInto('players')
        .values({
          ...{ player_id: newId(ctx.now()), lobby_id, namespace_id, shard: 0, client },
          ...{ create_ts: now, deadline_ts: new Date(now.getTime() + 600_000) },
        })
        .execute()
    },
  }
}

let worlds = 0

function ip(args: string[], lines: string[] = []): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8', input: lines.join('\n') })
  assert.strictEqual(status, 0, `ip ${args.join(' ')}: ${stderr}`)
}

function inside(namespace: string, program: string, args: string[]): void {
  const { status } = spawnSync('ip', ['netns', 'exec', namespace, program, ...args])
  assert.strictEqual(status, 0, `${program} ${args.join(' ')}`)
}

/** The edge as a process of its own, which listens at all addresses of its namespace. Its database is a unix socket. */
async function startOwnEdge(
  t: TestContext,
  namespace: string,
  { descriptors = 4_096 }: { descriptors?: number | 'as many as may be' },
): Promise<{ ctx: Context; pid: number; port: number }> {
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-edge-'))
  const env = {
    MUSTER_DATA: data_dir,
    DATABASE_URL: await createDatabase(t),
    MUSTER_EDGE_HTTP_PORT: '0',
    MUSTER_EDGE_HTTPS_PORT: '0',
    MUSTER_DOMAIN_MAIN: 'muster.example',
    MUSTER_DOMAIN_CDN: 'pages.test',
    MUSTER_DOMAIN_JOB: 'lobbies.invalid',
    MUSTER_EDGE_PORTS: '26000-26063',
    MUSTER_EDGE_PORTS_SPARE: '16',
    MUSTER_LOG_LEVEL: 'silent',
  }
  const limit = descriptors === 'as many as may be' ? 'ulimit -n $(ulimit -Hn)' : `ulimit -n ${descriptors}`
  const limited = ['sh', '-c', `${limit}; exec "$0" "$1"`]
  const program = [...limited, process.execPath, join(import.meta.dirname, 'small-edge.ts')]
  const ctx = await openContext(readConfig(env), { log: pino({ level: 'silent' }) })
  const child = spawn('ip', ['netns', 'exec', namespace, ...program], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(async () => {
    child.stdin.end()
    await once(child, 'exit')
    await ctx.close()
    await rm(data_dir, { recursive: true, force: true })
  })
  const port = Number(String((await once(child.stdout, 'data'))[0]))
  assert.ok(child.pid)
  return { ctx, pid: child.pid, port }
}

type Answer = { bytes: number; victims: number; port: number; before: number; echoed: number; after: number }
type Program = { ask: (wish: object) => Promise<Answer> }

/** forged-sources-program.ts in a namespace: a line asked, a line answered. */
function startProgram(
  t: TestContext,
  namespace: string,
  who: string,
  reply = '',
  onWord: (line: string) => void = () => {},
): Program {
  const program = join(import.meta.dirname, 'forged-sources-program.ts')
  const child: ChildProcess = spawn('ip', ['netns', 'exec', namespace, process.execPath, program, who, reply, EDGE], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { stdin, stdout } = child
  assert.ok(stdin && stdout)
  const waiting: ((answer: Answer) => void)[] = []
  createInterface({ input: stdout }).on('line', (line) => {
    if (line.startsWith('{')) waiting.shift()?.(JSON.parse(line) as Answer)
    else onWord(line)
  })
  t.after(async () => {
    stdin.end()
    await once(child, 'exit')
  })
  return {
    ask: (wish) =>
      new Promise((resolve) => {
        waiting.push(resolve)
        stdin.write(`${JSON.stringify(wish)}\n`)
      }),
  }
}
