// The environment of the platform's processes: the resolved settings and the variables that every program needs. No other
// variable of the shell is passed on.
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { SETTING_NAMES } from '../config/settings.ts'

const NEEDED_TO_RUN = [
  'PATH',
  'HOME',
  'USER',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'TEMP',
  'SystemRoot',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** Compiled modules: 6 MB. With them a role loads in half the time. */
export const COMPILED_FOLDER = 'compiled'

/** `resolved` overrides the environment. Settings without a value are absent, so their defaults apply. */
export function roleEnvironment(
  env: NodeJS.ProcessEnv,
  config: Config,
  resolved: Record<string, string>,
): Record<string, string> {
  return {
    ...pick(env, NEEDED_TO_RUN),
    ...pick(env, SETTING_NAMES),
    MUSTER_DATA: config.data_dir,
    NODE_COMPILE_CACHE: env.NODE_COMPILE_CACHE ?? join(config.data_dir, COMPILED_FOLDER),
    ...resolved,
  }
}

/** The environment of a program of this repository that is an ordinary client of the platform. */
export function clientEnvironment(env: NodeJS.ProcessEnv, url: string, token: string): Record<string, string> {
  return { ...pick(env, NEEDED_TO_RUN), MUSTER_URL: url, MUSTER_TOKEN: token }
}

function pick(env: NodeJS.ProcessEnv, names: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {}
  for (const name of names) {
    const value = env[name]
    if (value !== undefined && value !== '') picked[name] = value
  }
  return picked
}
