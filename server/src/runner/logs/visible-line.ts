// What a person sees of a line on a terminal: without colours, and of what overwrites itself only the last state. Other
// control characters stay. One pass over the bytes. The 8-bit forms of these sequences are bytes of UTF-8, and stay too.

const [BELL, BACKSPACE, RETURN, ESCAPE] = [0x07, 0x08, 0x0d, 0x1b]
/** The second byte of `ESC [`, and of sequences that end with a bell or with `ESC \`: titles, links, device strings. */
const CSI = 0x5b
const STRINGS: ReadonlySet<number> = new Set(Array.from(']PX^_', (text) => text.charCodeAt(0)))
const BACKSLASH = 0x5c
/** Last bytes of CSI: `K` and `J` erase, `G` moves the cursor within the line. */
const [ERASE_LINE, ERASE_SCREEN, COLUMN] = [0x4b, 0x4a, 0x47]
const [DIGIT_1, DIGIT_2] = [0x31, 0x32]

export function visibleLine(line: Buffer): Buffer {
  if (!line.includes(ESCAPE) && !line.includes(RETURN) && !line.includes(BACKSPACE)) return line
  const out = Buffer.allocUnsafe(line.length)
  let length = 0
  // The next character replaces what is there.
  let is_returned = false
  for (let at = 0; at < line.length; at++) {
    const byte = line[at]!
    if (byte === ESCAPE) {
      const end = endOfSequence(line, at)
      if (line[at + 1] === CSI) {
        const parameter = end - at === 2 ? null : line[at + 2]!
        const erases = line[end] === ERASE_LINE || line[end] === ERASE_SCREEN
        if (erases && (is_returned || parameter === DIGIT_2)) length = 0
        if (line[end] === COLUMN && (parameter === null || (parameter === DIGIT_1 && end - at === 3)))
          is_returned = true
      }
      at = end
    } else if (byte === RETURN) {
      is_returned = true
    } else if (byte === BACKSPACE) {
      length = withoutLast(out, length)
    } else {
      if (is_returned) length = 0
      is_returned = false
      out[length++] = byte
    }
  }
  return Buffer.from(out.subarray(0, length))
}

/** The place of the last byte of the sequence that begins at `start`, or of the line. */
function endOfSequence(line: Buffer, start: number): number {
  const kind = line[start + 1] ?? 0
  if (kind === CSI) {
    // Parameters and intermediate bytes, then one final byte.
    let at = start + 2
    while (at < line.length && line[at]! >= 0x20 && line[at]! <= 0x3f) at++
    return isPrintable(line[at]) ? at : at - 1
  }
  if (STRINGS.has(kind)) return endOfString(line, start)
  let at = start + 1
  while (at < line.length && line[at]! >= 0x20 && line[at]! <= 0x2f) at++
  return isPrintable(line[at]) ? at : at - 1
}

/** A string without an end is text that a person sees, behind the two bytes that begin it. */
function endOfString(line: Buffer, start: number): number {
  const next = line.indexOf(ESCAPE, start + 2)
  // Up to the next sequence only, so that no byte is searched twice.
  const bell = line.subarray(start + 2, next === -1 ? line.length : next).indexOf(BELL)
  if (bell !== -1) return start + 2 + bell
  return next !== -1 && line[next + 1] === BACKSLASH ? next + 1 : start + 1
}

function isPrintable(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x7e
}

/** The length without the last character, which may have several bytes. */
function withoutLast(out: Buffer, length: number): number {
  let at = Math.max(0, length - 1)
  while (at > 0 && (out[at]! & 0xc0) === 0x80) at--
  return at
}
