// A command for a seat under the limits of its visitor, and told of.
import type { IpIntelligence } from '../../addresses/ip-intelligence.ts'
import { phase } from '../../observe/ray.ts'
import type { Decision, Env, FreshIds, SeatWish } from '../book/commands.ts'
import type { Book } from '../book/state.ts'
import { type ClientLimits, clientLimit } from './client-limit.ts'
import type { Requester } from './requester.ts'

type Command<T> = (book: Book, ids: FreshIds, env: Env) => Decision<T>

/**
 * The command, under the limit of the moment in which it is carried out: what is known of an address may have changed while
 * a captcha was looked at or a lobby died. A game's backend is told which limit it was; a player is not, for he would try
 * addresses until one is not known.
 */
export function limited<T>(
  { ip_intelligence }: { ip_intelligence: IpIntelligence },
  limits: ClientLimits,
  { address, is_backend, tale, ray }: Pick<Requester, 'address' | 'is_backend' | 'tale' | 'ray'>,
  wish: SeatWish,
  command: Command<T>,
): Command<T> {
  return (book, ids, env) => {
    const limit = clientLimit(limits, ip_intelligence.factsOf(address))
    wish.client_players_max = limit.players_max
    if (wish.party !== null) {
      wish.party.playersMaxOf = (member) => clientLimit(limits, ip_intelligence.factsOf(member)).players_max
    }
    const decision = command(book, ids, env)
    tale?.decided(book, { wish, decision, limit })
    phase(ray, 'commit')
    const is_over = 'refused' in decision && decision.refused === 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
    return is_over && is_backend ? { ...decision, metadata: limit } : decision
  }
}
