// Long polls of records. The watch index of a response is its hash, so a call that sends it back waits until the response
// would differ. Responses are read again every few seconds, and at once after a change that another process announces for a
// namespace. http/watches.ts limits how many calls wait.
import { createHash } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { createLongPoll, type LongPoll } from '../database/long-poll.ts'
import { CHANNELS } from '../wire/channels.ts'
import type { OperationRequest } from './implement.ts'

const POLL_MS = 5_000
/** All calls that http/watches.ts lets wait, and those that are just ending. */
const WAITING_MAX = 5_000
const RETRY_AFTER_S = 5
const INDEX_LENGTH = 22

type Watching = { query: { watch_index?: string } } & Pick<OperationRequest<never>, 'isGone' | 'gone'>
type Watched<Records> = Records & { watch: { index: string } }

export class WatchedRecords {
  readonly #waiting: LongPoll

  constructor(ctx: Context) {
    this.#waiting = createLongPoll(ctx, { channel: CHANNELS.namespaces, poll_ms: POLL_MS, waiting_max: WAITING_MAX })
  }

  /**
   * Returns the records once they differ from those of the caller's index, or after 40 s. `namespacesOf`: the namespaces whose
   * changes are noticed at once. Throws API_NOT_AVAILABLE when too many calls wait, and the errors of `read`.
   */
  async respond<Records extends object>(
    { query, isGone, gone }: Watching,
    read: () => Promise<Records>,
    namespacesOf: (records: Records) => readonly string[] = () => [],
  ): Promise<Watched<Records>> {
    let latest = withIndex(await read())
    if (query.watch_index === undefined) return latest
    const readNews = async (): Promise<Watched<Records> | null> => {
      latest = withIndex(await read())
      if (latest.watch.index === query.watch_index) return null
      // Read again: the change may be the removal of this very caller, who then has no right to the records.
      latest = withIndex(await read())
      return latest
    }
    const found = await this.#waiting.until(namespacesOf(latest), readNews, isGone, gone)
    if (found === 'busy') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    return found ?? latest
  }

  /** Ends all waiting calls with a response. */
  close(): void {
    this.#waiting.close()
  }
}

function withIndex<Records extends object>(records: Records): Watched<Records> {
  const index = createHash('sha256').update(JSON.stringify(records)).digest('base64url').slice(0, INDEX_LENGTH)
  return { ...records, watch: { index } }
}
