// Labels and annotations that the server sets: the rules of Kubernetes for their keys and values.
import { CallError } from './call-error.ts'

/** Keys of the server are stored below this prefix, like those of Agones. */
const KEY_PREFIX = 'agones.dev/sdk-'
/** Labels, and annotations, that a server can set. */
export const ENTRIES_MAX = 256
const NAME_LENGTH_MAX = 63
const LABEL_VALUE_LENGTH_MAX = 63
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** By their whole key. */
export type Entries = Readonly<Record<string, string>>

export function withLabel(labels: Entries, key: string, value: string): Entries {
  if (value !== '' && (value.length > LABEL_VALUE_LENGTH_MAX || !NAME.test(value)))
    throw new CallError(
      'INVALID_ARGUMENT',
      `value: a label has at most ${LABEL_VALUE_LENGTH_MAX} of the characters A-Z a-z 0-9 . _ -, and begins and ends with a letter or a digit`,
    )
  return withEntry(labels, key, value)
}

export function withAnnotation(annotations: Entries, key: string, value: string): Entries {
  return withEntry(annotations, key, value)
}

/** The server's labels by the keys that it gave, for the tags of the lobby. */
export function tagsOf(labels: Entries): Entries {
  const own = Object.entries(labels).filter(([name]) => name.startsWith(KEY_PREFIX))
  return Object.fromEntries(own.map(([name, value]) => [name.slice(KEY_PREFIX.length), value]))
}

function withEntry(entries: Entries, key: string, value: string): Entries {
  const name = `sdk-${key}`
  if (key === '' || name.length > NAME_LENGTH_MAX || !NAME.test(name))
    throw new CallError(
      'INVALID_ARGUMENT',
      `key: 1 to ${NAME_LENGTH_MAX - 4} of the characters A-Z a-z 0-9 . _ -, the last one a letter or a digit`,
    )
  const full = `${KEY_PREFIX}${key}`
  if (!Object.hasOwn(entries, full) && Object.keys(entries).length >= ENTRIES_MAX)
    throw new CallError('RESOURCE_EXHAUSTED', `a server has at most ${ENTRIES_MAX} labels, and as many annotations`)
  return { ...entries, [full]: value }
}
