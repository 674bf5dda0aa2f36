// How many players one client may have in a namespace: the least of the namespace's limit and of those of all classes that
// the client's address is in. A client is an IPv4 address or an IPv6 /64 (net/client-ip.ts); 0 lets nobody in.
import { ADDRESS_CLASSES, type AddressClass, type AddressFacts, type IpIntelligence } from '../net/ip-intelligence.ts'
import { phase } from '../observe/ray.ts'
import type { Book, Decision, FreshIds, SeatWish } from './book/book.ts'
import type { Visitor } from './visitor.ts'

type LimitName = 'max_players_per_client' | `max_players_per_client_${AddressClass}`
export type ClientLimits = Record<LimitName, number>
/** The limit that decides, and its number. */
export type ClientLimit = { limit: LimitName; players_max: number }

type Command<T> = (book: Book, ids: FreshIds, now_ms: number) => Decision<T>

export function clientLimit(limits: ClientLimits, { classes }: Pick<AddressFacts, 'classes'>): ClientLimit {
  let strictest: ClientLimit = { limit: 'max_players_per_client', players_max: limits.max_players_per_client }
  if (classes.size === 0) return strictest
  for (const address_class of ADDRESS_CLASSES) {
    const limit = `max_players_per_client_${address_class}` as const
    if (classes.has(address_class) && limits[limit] < strictest.players_max) {
      strictest = { limit, players_max: limits[limit] }
    }
  }
  return strictest
}

/**
 * The command, under the limit of the moment in which it is carried out: what is known of an address may have changed while
 * a captcha was looked at or a lobby died. A game's backend is told which limit it was; a player is not, for he would try
 * addresses until one is not known.
 */
export function limited<T>(
  { ip_intelligence }: { ip_intelligence: IpIntelligence },
  limits: ClientLimits,
  { address, is_backend, tale, ray }: Pick<Visitor, 'address' | 'is_backend' | 'tale' | 'ray'>,
  wish: SeatWish,
  command: Command<T>,
): Command<T> {
  return (book, ids, now_ms) => {
    const limit = clientLimit(limits, ip_intelligence.factsOf(address))
    wish.client_players_max = limit.players_max
    if (wish.party !== null) {
      wish.party.playersMaxOf = (member) => clientLimit(limits, ip_intelligence.factsOf(member)).players_max
    }
    const decision = command(book, ids, now_ms)
    tale?.decided(book, { wish, decision, limit })
    phase(ray, 'commit')
    const is_over = 'refused' in decision && decision.refused === 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
    return is_over && is_backend ? { ...decision, metadata: limit } : decision
  }
}
