// The last lines of a lobby, as its developer sees them when its server has failed: of both streams, in the order of time.
import { LOG_STREAMS } from '../../logs/kept.ts'
import type { Driver } from '../drivers/driver.ts'

const LINES_MAX = 20
const LINE_LENGTH_MAX = 400

export async function logTail(driver: Pick<Driver, 'logs'>, lobby_id: string): Promise<string[]> {
  const streams = await Promise.all(LOG_STREAMS.map((stream) => driver.logs(lobby_id, stream, LINES_MAX)))
  return streams
    .flat()
    .sort((a, b) => a.ts.getTime() - b.ts.getTime())
    .slice(-LINES_MAX)
    .map(({ bytes }) => storable(bytes.toString().slice(0, LINE_LENGTH_MAX)))
}

/** PostgreSQL takes no NUL, nor half of a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
