// Headers as text: look-ups in the lines of a message that is forwarded.

/** Returns a header's value from the forwarded lines, several values as a list; undefined: there is none. */
export function headerOf(head: { lines: string }, name: string): string | undefined {
  let found: string | undefined
  for (let at = 0; at < head.lines.length; ) {
    const line_end = head.lines.indexOf('\r\n', at)
    if (head.lines.charAt(at + name.length) === ':' && head.lines.slice(at, at + name.length).toLowerCase() === name) {
      const value = head.lines.slice(at + name.length + 2, line_end)
      found = found === undefined ? value : `${found}, ${value}`
    }
    at = line_end + 2
  }
  return found
}

/** Removes the lines for which `isDropped` returns true. It is called with the name in lower case and the value. */
export function linesWithout(lines: string, isDropped: (name: string, value: string) => boolean): string {
  let left = ''
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(':', at)
    const line_end = lines.indexOf('\r\n', at)
    const name = lines.slice(at, colon).toLowerCase()
    if (!isDropped(name, lines.slice(colon + 2, line_end))) left += lines.slice(at, line_end + 2)
    at = line_end + 2
  }
  return left
}
