// Which matchmaker a request goes to: the one that has the shard of its namespace. The edge learns the shard of a credential
// from a response (shard-protocol.ts); it never changes. Who has a shard is read from the leases. Any other matchmaker is
// right too, since it sends the request on. So a request goes to another one where the edge does not know the shard, or cannot
// reach its matchmaker. Each one is probed twice a second where there are several: a network that drops packets refuses
// nothing. Matchmakers of other nodes are asked over TLS (process-tls/); those of this node are not.
import { headerOf } from '@musterhost/contract/edge'
import { LRUCache } from 'lru-cache'
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import { canConnect } from '../../outbound/tcp-probe.ts'
import { ProcessTls } from '../../process-tls/process-tls.ts'
import { bareHost } from '../../text/bare-host.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { ASK_SHARD_HEADER } from '../../wire/headers.ts'
import type { Exchange } from '../http/exchange.ts'
import {
  LEASES_EVERY_MS,
  MATCHMAKER_PROBE_EVERY_MS,
  MATCHMAKER_PROBE_MS_MAX,
  MATCHMAKER_PROBES_MAX,
  MATCHMAKERS_MAX,
  SHARD_CREDENTIALS_MAX,
} from '../limits.ts'
import type { Address } from '../routes/routes.ts'

const ASK_LINE = `${ASK_SHARD_HEADER}: 1\r\n`
const TOKEN_MEMBER = /[?&]identity_token=([^&]*)/

/** `failures`: probes in a row that failed. */
type Known = { address: Address; is_leaving: boolean; failures: number }

type Row = { address: string; node_id: string; is_leaving: boolean; shards: number[] }

type Asking = Pick<Exchange, 'head' | 'path' | 'role_lines'>

export class Matchmakers {
  readonly #ctx: Context
  readonly #configured: Address
  /** Called when a matchmaker cannot be reached any more: no response of it will come. */
  onUnreachable: (address: Address) => void = () => {}
  /** By address. Empty: this edge asks the configured one. */
  #known = new Map<string, Known>()
  #by_shard = new Map<number, Known>()
  /** By their texts. Channels keep them, so one that comes back is the same object. */
  readonly #addresses = new LRUCache<string, Address>({ max: 4 * MATCHMAKERS_MAX })
  readonly #shards = new LRUCache<string, number>({ max: SHARD_CREDENTIALS_MAX })
  readonly #tls: ProcessTls
  readonly #watch: Watch
  readonly #probing: NodeJS.Timeout

  constructor(ctx: Context, configured: Address) {
    this.#ctx = ctx
    this.#configured = configured
    this.#tls = new ProcessTls(ctx, 'edge')
    this.#watch = watchChannel(ctx, {
      channel: CHANNELS.shard_leases,
      every_ms: LEASES_EVERY_MS,
      run: () => this.#read(),
      failure: 'the leases of shards could not be read; trying again',
    })
    this.#probing = setInterval(() => this.#probeAll(), MATCHMAKER_PROBE_EVERY_MS)
  }

  /** The addresses of all matchmakers. */
  addresses(): Address[] {
    const known = [...this.#known.values()].map(({ address }) => address)
    return known.length === 0 ? [this.#configured] : known
  }

  /** Where the request goes. Makes it ask for its shard where that is not known. */
  addressOf(exchange: Asking): Address {
    if (this.#known.size <= 1) return this.#any()
    const credential = credentialOf(exchange)
    const shard = credential === undefined ? undefined : this.#shards.get(credential)
    exchange.role_lines = shard === undefined ? ASK_LINE : ''
    const holder = shard === undefined ? undefined : this.#by_shard.get(shard)
    return holder !== undefined && isReachable(holder) ? holder.address : this.#any()
  }

  /** A response says which shard its request belongs to. */
  learn(exchange: Asking, shard: number): void {
    const credential = credentialOf(exchange)
    if (credential !== undefined) this.#shards.set(credential, shard)
  }

  /** No connection could be made: until a probe succeeds, requests go to another one, where there is one. */
  failed(address: Address): void {
    const known = this.#known.get(textOf(address))
    if (known !== undefined) this.#fail(known, MATCHMAKER_PROBES_MAX)
  }

  close(): Promise<void> {
    clearInterval(this.#probing)
    this.#tls.close()
    return this.#watch.close()
  }

  #any(): Address {
    const own = this.#known.get(textOf(this.#configured))
    const is_cut_off = [...this.#known.values()].some((known) => !isReachable(known))
    if (own !== undefined && !is_cut_off && !own.is_leaving) return own.address
    // What this node cannot reach, its own matchmaker cannot reach either.
    let any: Known | undefined
    for (const known of this.#known.values()) {
      if (known !== own && (any === undefined || rankOf(known) > rankOf(any))) any = known
    }
    if (any !== undefined && isReachable(any)) return any.address
    return own?.address ?? any?.address ?? this.#configured
  }

  async #read(): Promise<void> {
    // Over the link a joined node reaches the configured one only, which sends requests on.
    if (this.#ctx.config.link !== null) return
    const { rows } = await this.#ctx.pool.query<Row>(LEASES_QUERY)
    const { node_id } = this.#ctx.config
    const is_other = (row: Row): boolean => row.node_id !== node_id && row.address !== textOf(this.#configured)
    if (rows.some(is_other)) await this.#tls.open()
    const known = new Map<string, Known>()
    const by_shard = new Map<number, Known>()
    for (const row of rows) {
      const { address, is_leaving, shards } = row
      const before = this.#known.get(address)
      // A process that starts again at this address may hold what the one before it had.
      const one = before ?? { address: this.#addressAt(address), is_leaving, failures: 0 }
      one.is_leaving = is_leaving
      // The object stays, so that connections that are made again are what the row says now.
      one.address.tls = is_other(row) ? this.#tls : undefined
      known.set(address, one)
      for (const shard of shards) by_shard.set(shard, one)
    }
    this.#known = known
    this.#by_shard = by_shard
  }

  #addressAt(text: string): Address {
    const known = this.#addresses.get(text)
    if (known !== undefined) return known
    const address = parseAddress(text, this.#configured)
    this.#addresses.set(text, address)
    return address
  }

  #probeAll(): void {
    if (this.#known.size <= 1) return
    for (const known of this.#known.values()) void this.#probe(known)
  }

  async #probe(known: Known): Promise<void> {
    const { hostname, port } = known.address
    if (await canConnect({ host: bareHost(hostname), port }, MATCHMAKER_PROBE_MS_MAX)) known.failures = 0
    else this.#fail(known, 1)
  }

  #fail(known: Known, count: number): void {
    const was_reachable = isReachable(known)
    known.failures += count
    if (!was_reachable || isReachable(known) || this.#known.size <= 1) return
    this.#ctx.log.warn({ address: textOf(known.address) }, 'a matchmaker cannot be reached; others are asked')
    this.onUnreachable(known.address)
  }
}

function isReachable({ failures }: Known): boolean {
  return failures < MATCHMAKER_PROBES_MAX
}

function rankOf(known: Known): number {
  return (isReachable(known) ? 2 : 0) + (known.is_leaving ? 0 : 1)
}

/** What stands for the namespace in a request; undefined: nothing, or something else. */
function credentialOf({ head, path }: Asking): string | undefined {
  const authorization = headerOf(head, 'authorization')
  if (authorization !== undefined) return authorization
  return head.is_upgrade ? TOKEN_MEMBER.exec(path)?.[1] : headerOf(head, 'origin')
}

function textOf({ hostname, port }: Address): string {
  return `${hostname}:${port}`
}

function parseAddress(text: string, configured: Address): Address {
  if (text === textOf(configured)) return configured
  const colon = text.lastIndexOf(':')
  return { hostname: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

const LEASES_QUERY = {
  name: 'edge-leases',
  text: `
    select address, max(node_id) as node_id, bool_and(is_leaving) as is_leaving,
      coalesce(array_agg(shard) filter (where shard is not null), '{}') as shards
    from matchmakers left join shard_leases on shard_leases.writer = matchmakers.writer
    group by address order by address limit ${MATCHMAKERS_MAX}`,
}
