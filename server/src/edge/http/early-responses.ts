// A backend may answer before it has taken all of a body, and close: what is written to it from then on is reset. Node ends
// a socket with the first write that fails, and with it goes an answer that has come and is not read yet. Here such a write
// counts as one: what cannot be written is of no use to anybody, and that the connection is over the reader is told, behind
// the answer.
import type { UpstreamConnection } from './exchange.ts'

type Done = (error?: Error | null) => void

/** For a wire over which more of a body is to come, before the first of it is written. */
export function tolerateWriteErrors(wire: UpstreamConnection): void {
  if (wire.outlives_writes) return
  wire.outlives_writes = true
  const { socket } = wire
  const { _write, _writev } = socket
  const excused =
    (done: Done): Done =>
    (error) => {
      if (!error || wire.exchange === null) return done(error)
      wire.error = error
      done()
    }
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, excused(done))
  socket._writev = (chunks, done) => _writev!.call(socket, chunks, excused(done))
}
