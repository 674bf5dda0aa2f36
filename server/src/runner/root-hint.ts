// A server that refuses to run as root says so in a line of its output, in words of its own. Its developer needs the remedy:
// the image named no user.

const AS_ROOT = ['as root', 'as the root', 'root user', '"root"', "'root'"]
const REFUSALS = ['not ', "n't", 'refus', 'never', 'forbid', 'disallow', 'without']
/** The opposite: the server wants to be root. */
const WANTS_ROOT = [
  'not root',
  'not the root',
  'must be root',
  'must be run as root',
  'not running as root',
  'unless run as',
]

const HINT =
  'The server refuses to run as root, and its image names no other user. Set user: "1000:1000" in the docker block of the version, or add USER 1000 to the Dockerfile.'

/** The sentence for the log of a lobby whose server ended; null when no line says this. */
export function rootHint(lines: readonly string[]): string | null {
  return lines.some(refusesRoot) ? HINT : null
}

function refusesRoot(line: string): boolean {
  const text = line.toLowerCase()
  const has = (words: readonly string[]): boolean => words.some((word) => text.includes(word))
  return has(AS_ROOT) && has(REFUSALS) && !has(WANTS_ROOT)
}
