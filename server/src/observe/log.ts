// The log: one JSON object a line (pino). A role writes to its standard output without waiting for the reader: a
// supervisor that stands still must not stop a role, so beyond a bounded buffer lines are dropped. The supervisor keeps
// the lines in files and shows warnings and errors on the terminal.
import { type DestinationStream, type Logger, pino } from 'pino'
import type { Config } from '../config/config.ts'

/** Bytes that wait for a reader; beyond it new lines are dropped. */
const LOG_BUFFER_BYTES_MAX = 4 * 1024 * 1024
const STANDARD_OUTPUT = 1

/** Members that carry secrets in what we log by accident, whatever their form. */
const SECRET_PATHS = [
  ...['token', '*.token', 'authorization', '*.authorization', 'headers.cookie', '*.headers.cookie'],
  // pg adds the whole connection to the error of an idle one: its settings, and the text of each statement.
  'err.client',
]

/**
 * Secrets that are known by their form, wherever they stand in a line: in a message, an error, an address. Each looks a
 * bounded way ahead, for strangers have a say in what is logged.
 */
const SECRET_FORMS: readonly RegExp[] = [
  // Tokens of ours, but for the label: label.header.claims.signature; the header begins with {" in base64url.
  /(?<=\.)eyJ[\w-]+\.[\w-]+\.[\w-]+/g,
  // What follows the scheme of an Authorization header.
  /(?<=\b(?:Basic|Bearer) )[\w+/=.~-]+/gi,
  // Passwords in addresses: of the database, of the mail server.
  /(?<=:\/\/[^\s"/:@]{0,64}:)[^\s"@/]+(?=@)/g,
  // A presigned address is a credential.
  /(?<=[?&]signature=)[0-9a-f]+/g,
  // bcrypt hashes, and private keys as their files have them (a line of JSON has \\n for the ends of lines).
  /\$2[aby]\$\d\d\$[./\w]{53}/g,
  /-----BEGIN [A-Z ]{0,16}PRIVATE KEY-----.{0,4096}?-----END [A-Z ]{0,16}PRIVATE KEY-----/g,
]
const HIDDEN = '[hidden]'

/** `secrets`: hidden as they are, and in their JSON form. */
function hideSecrets(secrets: readonly string[], line: string): string {
  const known = secrets.reduce((text, secret) => text.replaceAll(secret, HIDDEN), line)
  return SECRET_FORMS.reduce((text, form) => text.replace(form, HIDDEN), known)
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * The log of one process. `who` is in every line: a role, or `supervisor`. `secrets`: what is hidden wherever it stands,
 * beside what is known by its form. A fatal line is flushed before the call returns, all others in the background.
 */
export function createLog(options: {
  who: string
  level: Config['log_level']
  secrets?: readonly string[]
  to?: DestinationStream
}): Logger {
  const secrets = [...new Set(options.secrets?.flatMap((secret) => [secret, inJson(secret)]))]
  const to = options.to ?? pino.destination({ dest: STANDARD_OUTPUT, sync: false, maxLength: LOG_BUFFER_BYTES_MAX })
  return pino(
    {
      level: options.level,
      base: { who: options.who },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_PATHS, censor: HIDDEN },
      hooks: { streamWrite: (line) => hideSecrets(secrets, line) },
    },
    to,
  )
}

/** The log and its children write on to the file instead of the standard output. */
export function writeLogTo(log: Logger, path: string): void {
  Reflect.set(
    log,
    pino.symbols.streamSym,
    pino.destination({ dest: path, sync: false, maxLength: LOG_BUFFER_BYTES_MAX }),
  )
}
