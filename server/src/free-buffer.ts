// The memory of bytes that came from a socket. Each chunk has memory of its own, outside the collector's heap, and what
// is freed only when the collector comes round makes it come round for that: where bytes just pass through, that was
// half of the CPU time (measured at 64 KiB a chunk). So whoever has passed a chunk on gives its memory back at once.

/** Below it, giving back costs as much as it saves. */
const CHUNK_BYTES_MIN = 8 * 1024

/** The chunk is empty afterwards. Only for bytes that nobody else holds; those that share their memory are left alone. */
export function freeBuffer(chunk: Uint8Array): void {
  const { buffer } = chunk
  if (chunk.byteLength < CHUNK_BYTES_MIN || chunk.byteLength !== buffer.byteLength) return
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}
