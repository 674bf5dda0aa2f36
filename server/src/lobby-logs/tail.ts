// The last lines of a lobby, as its developer sees them when its server has failed: of both streams, in the order of time.
import { LOG_STREAMS, type LogLine, type LogStream } from './files.ts'

/** Lines that are returned, of both streams together. */
const LINES_MAX = 20
/** In characters; so all of them together are at most 32 KB of UTF-8. */
const LINE_LENGTH_MAX = 400

/** `read` returns the last lines of one stream, oldest first. Bytes that are not UTF-8 become U+FFFD. */
export async function logTail(
  read: (stream: LogStream, lines_max: number) => Promise<readonly LogLine[]>,
): Promise<string[]> {
  const streams = await Promise.all(LOG_STREAMS.map((stream) => read(stream, LINES_MAX)))
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
