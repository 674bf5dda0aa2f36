// A body as a whole, of which another program decides the length.

/** Reads the stream to its end. Ends it and throws the error of `tooLong` where it has more than `bytes_max` bytes. */
export async function readBounded(
  stream: AsyncIterable<Uint8Array>,
  bytes_max: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    length += chunk.length
    if (length > bytes_max) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
