// "Did you mean": the known name that a misspelled one is closest to.
import { closestMatch } from 'leven'

/** A third of the letters may be wrong: `max_playerz` is near `max_players`, `size` is not near `tier`. */
const LETTERS_PER_MISTAKE = 3
/** No name of the platform is longer. Comparing takes the product of both lengths. */
const NAME_LENGTH_MAX = 64

/** The name of `known` that is closest to `name`; null when none is close. */
export function closestName(name: string, known: readonly string[]): string | null {
  if (name.length > NAME_LENGTH_MAX) return null
  const mistakes_max = Math.max(1, Math.floor(name.length / LETTERS_PER_MISTAKE))
  return closestMatch(name, known, { maxDistance: mistakes_max }) ?? null
}

/** The closest of `known` as a sentence with a space before it; empty when none is close. */
export function didYouMean(name: string, known: readonly string[]): string {
  const closest = closestName(name, known)
  return closest === null ? '' : ` Did you mean ${closest}?`
}
