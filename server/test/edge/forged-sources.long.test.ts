// Datagrams with a forged source, on a real network: an edge, a sender and a victim, each in a network namespace of its own.
// The sender writes the victim's address into its datagrams. The edge's replies reach the victim, which counts them.
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
import { readConfig } from '../../src/config/read-config.ts'
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
import { markedName } from '../leftovers/run.ts'
import { lacking } from '../run/optional-programs.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { insertRawLobby } from './platform.ts'

const EDGE = '10.77.0.1'
/** All addresses of 10.77.2.0/24 belong to the victim's machine; the sender forges them. */
const VICTIMS = '10.77.2'
const FORGED_PORTS = 64
const REPLIES = 10
/** Of a hundred that are forged at once. */
const VICTIMS_LEAST = 50
/** Descriptors of the edge that vary: connections to its database. */
const OTHERS = 12
const LOOK_MS = 50
const SLOW_BURSTS = 8
/** After this time without a datagram, none is under way. */
const QUIET_MS = 300

/** Why the tests cannot run on this machine; null: they can. */
function obstacle(): string | null {
  const missing = lacking('root', 'ip')
  if (missing !== null) return missing
  const name = markedName('try')
  spawnSync('ip', ['netns', 'add', name])
  const tried = spawnSync('ip', ['netns', 'exec', name, 'true'])
  if (tried.status !== 0) return 'needs network namespaces'
  spawnSync('ip', ['netns', 'delete', name])
  return null
}

const skip = obstacle() ?? false

test('a forged source amplifies at most threefold, bounded for each victim and in total', {
  skip,
}, async (t) => {
  const world = await openWorld(t)
  const { number } = await world.lobby(`(datagram) => Array.from({ length: ${REPLIES} }, () => datagram)`)

  // One victim, slowly, so that the factor is the limit.
  // A kernel drops what an edge without processor time does not read, so each burst is followed by a pause.
  const [slow, got] = [{ bytes: 0 }, { bytes: 0 }]
  for (let burst = 0; burst < SLOW_BURSTS; burst++) {
    slow.bytes += (await world.forge({ number, victims: 1, ports: FORGED_PORTS, count: 32, length: 40 })).bytes
    got.bytes += (await world.settled()).bytes
  }
  if (got.bytes <= slow.bytes) got.bytes += (await world.settled(({ bytes }) => got.bytes + bytes > slow.bytes)).bytes
  assert.strictEqual(slow.bytes, SLOW_BURSTS * 32 * 40)
  assert.ok(got.bytes > slow.bytes, `what is allowed arrives: ${got.bytes} bytes for ${slow.bytes}`)
  assert.ok(got.bytes <= REPLY_FACTOR_MAX * slow.bytes, `${got.bytes} bytes for ${slow.bytes}`)

  // One victim, as fast as possible.
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
  const all = await world.settled(({ victims }) => victims > VICTIMS_LEAST)
  const many_seconds = Math.ceil((performance.now() - many_begun) / 1_000) + 1
  assert.ok(all.victims > VICTIMS_LEAST, `${all.victims} were hit`)
  assert.ok(all.bytes <= REPLY_FACTOR_MAX * many.bytes)
  assert.ok(
    all.bytes <= many_seconds * UNVALIDATED_BYTES_MAX,
    `${all.bytes} bytes of ${many.bytes} in ${many_seconds} s`,
  )
})

test('a source with a seat or a cookie gets full replies; one that only echoes does not', {
  skip,
}, async (t) => {
  const world = await openWorld(t)
  const lobby = await world.lobby(
    `(datagram) => Array.from({ length: ${REPLIES} }, () => crypto.getRandomValues(Buffer.alloc(datagram.length)))`,
  )
  const { number } = lobby
  // The victim plays: replies are threefold at first, also after an echo, and tenfold with cookie and token.
  const played = await world.play({ lobby, length: 100 })
  assert.strictEqual(played.before, REPLY_FACTOR_MAX * 100)
  assert.strictEqual(played.echoed, REPLY_FACTOR_MAX * 100)
  assert.strictEqual(played.after, REPLIES * 100)
  // The forger has not seen the victim's cookie, and cannot guess it.
  const guessed = await world.forge({ number, victims: 1, ports: FORGED_PORTS, count: 512, length: 40 })
  const got = await world.settled()
  assert.ok(got.bytes <= REPLY_FACTOR_MAX * guessed.bytes)

  await world.seat(lobby, `${VICTIMS}.1`)
  await until('a player with that address gets full replies', async () => {
    const { before } = await world.play({ lobby, length: 100 })
    return before === REPLIES * 100
  })
})

test('where a player token is required, a forged source reaches no lobby, and the victim gets less than was sent', {
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
  for (const command of wishes) {
    const { bytes } = await world.forge({ number, victims: 20, ports: 8, length: 0, ...command })
    const got = await world.settled()
    assert.ok(got.bytes < bytes / 4, `${got.bytes} bytes for ${bytes}`)
  }
  assert.deepStrictEqual(world.gameSaid(), [], 'the lobby has seen nothing')
})

test('forged sources are bounded in total and by client, displace no player, and are forgotten', {
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
  assert.strictEqual(await world.visit(lobby), place, 'the player keeps its socket towards the lobby')
  assert.ok(most <= sessions_max + OTHERS, `${most} of ${sessions_max}`)
  assert.ok(most > UDP_SESSIONS_PER_CLIENT_MAX, `only ${most} have arrived`)
  await until('silent sources are forgotten', () => world.descriptors() - before <= OTHERS)
  assert.strictEqual(await world.visit(lobby), place)
})

test('forged sources do not take the descriptors that connections need', { skip }, async (t) => {
  const world = await openWorld(t, { descriptors: 1_000 })
  const lobby = await world.lobby(PLACE)
  const { number } = lobby
  const place = await world.visit(lobby)
  await world.forge({ number, victims: 100, ports: 20, count: 2_000, length: 60 })
  assert.ok(await world.isServing(), 'a connection gets a response')
  assert.strictEqual(await world.visit(lobby), place)
})

/** A game that distinguishes sources by the edge's socket that they arrive from. */
const PLACE = '(datagram, { port }) => [Buffer.from(port + " " + crypto.randomUUID())]'

type Forgery = { number: number; victims: number; ports: number; count: number; length: number; text?: string }
type World = {
  /** Starts a lobby in the edge's namespace, whose game sends what `reply` returns for a datagram. */
  lobby: (reply: string, options?: { require_player_token?: boolean }) => Promise<Lobby>
  gameSaid: () => string[]
  /** Sends datagrams that seem to come from these victims and ports in turn. Returns the bytes sent. */
  forge: (command: Forgery) => Promise<{ bytes: number }>
  /** The victim plays: the bytes that it gets for its first datagram, for an echo, and with a cookie. */
  play: (command: { lobby: Lobby; length: number }) => Promise<Played>
  /** The victim as a validated player: the address at which the lobby sees it. */
  visit: (lobby: Lobby) => Promise<number>
  /** The descriptors that the edge has open, now and when their number is stable. */
  descriptors: () => number
  atRest: () => Promise<number>
  /** Whether the edge responds over HTTP. */
  isServing: () => Promise<boolean>
  /** The bytes that the victims received since the last call, once no more arrive. */
  /** What the victims received: when nothing more arrives, and what must arrive is there. */
  settled: (hasArrived?: (count: Count) => boolean) => Promise<Count>
  seat: (lobby: Lobby, client: string) => Promise<void>
}
/** Since the last that was settled. */
type Count = { bytes: number; victims: number }
type Played = { before: number; echoed: number; after: number }
type Lobby = { lobby_id: string; namespace_id: string; number: number }

async function openWorld(t: TestContext, options: { descriptors?: number | 'as many as may be' } = {}): Promise<World> {
  const [edge_ns, sender_ns, victim_ns] = [markedName('edge'), markedName('sender'), markedName('victim')]
  t.after(() => {
    for (const name of [edge_ns, sender_ns, victim_ns]) spawnSync('ip', ['netns', 'delete', name])
  })
  connectNamespaces({ edge_ns, sender_ns, victim_ns })

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
    forge: async (command) => ({ bytes: (await sender.ask({ kind: 'forge', ...command })).bytes }),
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
    async settled(hasArrived = () => true) {
      await until('what is allowed to arrive', async () => hasArrived(await victim.ask({ kind: 'count' })))
      let before = -1
      for (;;) {
        const now = await victim.ask({ kind: 'count' })
        if (now.bytes === before) break
        before = now.bytes
        await new Promise((resolve) => setTimeout(resolve, QUIET_MS))
      }
      return await victim.ask({ kind: 'count', is_last: true })
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

/** Both reach the edge. Replies reach only the victim, although the sender has the same addresses. */
function connectNamespaces({ edge_ns, sender_ns, victim_ns }: Record<'edge_ns' | 'sender_ns' | 'victim_ns', string>) {
  for (const name of [edge_ns, sender_ns, victim_ns]) ip(['netns', 'add', name])
  const links = [sender_ns, victim_ns].flatMap((name, index) => [
    `link add to${index} type veth peer name edge netns ${name}`,
    `link set to${index} up`,
  ])
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
  // A network that filters forged sources would drop these packets; most networks do not.
  for (const name of ['all', 'default', 'to0', 'to1', 'lo']) {
    inside(edge_ns, 'sh', ['-c', `echo 0 > /proc/sys/net/ipv4/conf/${name}/rp_filter`])
  }
  // It resolves the edge's hardware address with its own address.
  inside(sender_ns, 'sh', ['-c', 'echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce'])
}

function ip(args: string[], lines: string[] = []): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8', input: lines.join('\n') })
  assert.strictEqual(status, 0, `ip ${args.join(' ')}: ${stderr}`)
}

function inside(namespace: string, program: string, args: string[]): void {
  const { status } = spawnSync('ip', ['netns', 'exec', namespace, program, ...args])
  assert.strictEqual(status, 0, `${program} ${args.join(' ')}`)
}

/** Starts the edge as a process that listens at all addresses of its namespace. Its database is a unix socket. */
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

type ProgramReply = { bytes: number; victims: number; port: number; before: number; echoed: number; after: number }
type Program = { ask: (command: object) => Promise<ProgramReply> }

/** Runs forged-sources-program.ts in a namespace: a line of output for each line of input. */
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
  const waiting: ((reply: ProgramReply) => void)[] = []
  createInterface({ input: stdout }).on('line', (line) => {
    if (line.startsWith('{')) waiting.shift()?.(JSON.parse(line) as ProgramReply)
    else onWord(line)
  })
  t.after(async () => {
    stdin.end()
    await once(child, 'exit')
  })
  return {
    ask: (command) =>
      new Promise((resolve) => {
        waiting.push(resolve)
        stdin.write(`${JSON.stringify(command)}\n`)
      }),
  }
}
