// Files that a lobby finds in its writable folder when it starts: the config files of servers that read no variables.
import Type from 'typebox'

/** Files of a lobby. Each is passed to the sandbox by a descriptor of its own, and a shell has no more (the runner's monitor.ts). */
export const FILES_MAX = 4
/** Longest content of one file, before its placeholders are filled. */
const FILE_LENGTH_MAX = 16 * 1024
/** Any name but "." and "..", without lookahead: tools that make examples from patterns know none. */
const SEGMENT = String.raw`(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}|\.[A-Za-z0-9_-][A-Za-z0-9._-]{0,62}|\.\.[A-Za-z0-9._-]{1,62})`
const PATH_PATTERN = `^${SEGMENT}(?:/${SEGMENT}){0,3}$`

export const FilesConfig = Type.Record(
  Type.String({ pattern: PATH_PATTERN }),
  Type.String({ maxLength: FILE_LENGTH_MAX }),
  {
    additionalProperties: false,
    maxProperties: FILES_MAX,
    description:
      'Text files that are written when a lobby starts, at most 4, by their path within the writable folder of the lobby (`HOME`). Placeholders such as `${PORT_GAME}` are filled. Example: `{"server.cfg": "port ${PORT_GAME}"}`.',
  },
)
