// The edge's own headers as text. Look-ups in the lines of a message that is forwarded: @musterhost/contract/edge.

/** Returns the edge's own headers as lines. Throws for a value that no header can have, which is a fault of this code. */
export function linesOf(headers: readonly string[]): string {
  let lines = ''
  for (let index = 0; index < headers.length; index += 2) {
    if (!HEADER_VALUE.test(headers[index + 1]!)) throw new Error(`The header ${headers[index]} has an invalid value.`)
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`
  }
  return lines
}

const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
