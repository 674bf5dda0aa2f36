// The secrets in the operator's settings, which must not appear in a log, in each form in which a server may repeat them in
// an error.
import type { Config } from '../config/config.ts'

/** Shorter ones would blank out what has nothing to do with them. */
const LENGTH_MIN = 8

export function credentialsOf({
  database_url,
  database_listen_url,
  mail,
  metrics,
  otlp,
  login_turnstile,
  s3,
  backup_key,
}: Pick<
  Config,
  'database_url' | 'database_listen_url' | 'mail' | 'metrics' | 'otlp' | 'login_turnstile' | 's3' | 'backup_key'
>): string[] {
  const secrets = [
    ...loginOf(database_url),
    ...loginOf(database_listen_url),
    ...loginOf(mail?.smtp_url ?? null),
    metrics?.token ?? '',
    login_turnstile?.secret_key ?? '',
    s3?.secret_access_key ?? '',
    backup_key ?? '',
    // With its scheme and without.
    ...Object.values(otlp?.headers ?? {}).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]),
  ]
  return secrets.filter(({ length }) => length >= LENGTH_MIN)
}

/** The password in an address: percent-encoded, decoded, and in the form that a mail server receives. */
function loginOf(address: string | null): string[] {
  const [, user = '', password = ''] = /^\w+:\/\/([^:@/]*):([^@/]+)@/.exec(address ?? '') ?? []
  if (password === '') return []
  const [name, plain] = [decode(user), decode(password)]
  return [password, plain, base64(plain), base64(`\0${name}\0${plain}`)]
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // It means what it says.
    return text
  }
}
