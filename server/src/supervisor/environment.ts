// What the processes of the platform get in their environment: the settings as they were resolved, what a program needs
// to run at all, and nothing else of what happens to be in the shell of the person who typed `npm start`.
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

/** What Node has compiled of our modules: 6 MB, and a role that starts again loads in half the time. */
const COMPILED_FOLDER = 'compiled'

/** `resolved` wins over what the environment says; settings that nobody set stay away, so their defaults hold. */
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

/** For a program of the repository that is a client of the platform like any other. */
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
