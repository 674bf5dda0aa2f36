// How the platform learns that the server of a lobby is ready for players.
import Type, { type Static } from 'typebox'
import { EXPRESSION_LENGTH_MAX } from './line-expression.ts'
import { object } from './records.ts'

const ReadyLog = object(
  {
    log: Type.String({
      minLength: 1,
      maxLength: EXPRESSION_LENGTH_MAX,
      description:
        'Expression over the lines that the server writes to its standard output or standard error. The lobby is ready after the first line of which a part matches. Only the first 512 characters of a line count. Syntax: `.`, `[a-z]`, `\\d`, `\\w`, `\\s`, groups, `|`, `*`, `+`, `?`, `^`, `$`. Example: `Server started on port \\d+`.',
    }),
  },
  'Ready after a line of the log.',
)

export const ReadyConfig = Type.Union([Type.Enum(['sdk', 'listening', 'protocol']), ReadyLog], {
  description:
    'When a lobby is ready for players. `sdk`: the server calls ready. `listening`: the platform reaches the server at all its ports, except those with `port_range`. It opens one connection to each tcp port and closes it. An object with `log`: a line of its output matches. `protocol`: the server says so by its protocol. A call of ready counts in every case. Default `sdk`, and `protocol` where the server has one.',
})
/** What the platform waits for; a server may call ready before. Null: only for that call. */
export type ReadyCheck = Exclude<Static<typeof ReadyConfig>, 'sdk' | 'protocol'> | null

/** What the platform waits for beside a call of ready. */
export function readyCheckOf(ready: Static<typeof ReadyConfig> | undefined): ReadyCheck {
  return ready === undefined || ready === 'sdk' || ready === 'protocol' ? null : ready
}

/** What the developer of a server changes that never calls ready, as a sentence. Without ports only its output can tell. */
export function uncalledRemedy(has_ports: boolean): string {
  const otherwise = has_ports ? '`ready: listening`' : 'an expression in `ready: { log: ... }`'
  return `A server that never calls it needs ${otherwise} in its docker section, or \`protocol\` where it speaks the SDK of another platform.`
}
