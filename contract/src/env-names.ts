// Names of environment variables: those that a developer chooses, and those of the platform.

/** Names that `env` of the config may not set. Variables of a loader or an interpreter are allowed. */
const OWN_NAMES = /^(PLATFORM_|PORT_|PUBLIC_(HOST|PORT|URL)_)|^(PATH|HOME|TMPDIR)$/

/** The name of an environment variable that a developer chooses. */
export const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]{0,63}$'

/** Whether `env` of the config may not set the variable. PORT and HOST it may. */
export function isReservedVariable(name: string): boolean {
  return OWN_NAMES.test(name)
}

/** Whether every lobby gets the variable from the platform. A secret may not have such a name. */
export function isPlatformVariable(name: string): boolean {
  return isReservedVariable(name) || name === 'PORT' || name === 'HOST'
}
