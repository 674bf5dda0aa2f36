// Placeholders in `args`, `env` and `files` of a version config: `${PORT_GAME}` becomes the value of this lobby when it
// starts. `$${` is a literal `${`.

/** What every lobby has. Each is also known by the name of its variable, with `PLATFORM_` in front. */
export const LOBBY_PLACEHOLDERS = [
  'LOBBY_ID',
  'GAME_MODE_ID',
  'GAME_MODE_NAME',
  'NAMESPACE_ID',
  'NAMESPACE_NAME',
  'VERSION_ID',
  'VERSION_NAME',
  'REGION_ID',
  'REGION_NAME',
  'MAX_PLAYERS_NORMAL',
  'MAX_PLAYERS_DIRECT',
  'MAX_PLAYERS_PARTY',
  'CPU',
  'MEMORY',
] as const

/** The lobby's writable folder, in which `files` are written. */
export const HOME_PLACEHOLDER = 'HOME'

/** A name has at most 64 characters: the longest name of a port with its prefix is shorter. */
const PLACEHOLDER = /\$\$\{|\$\{([A-Z][A-Z0-9_]{0,63})\}/g
const CANDIDATE = /\$\$\{|\$\{([^}]{0,64})/g

type NamedPort = { name: string; port_range: unknown }

/** The part of a variable's name that stands for a port: `my-game` is `MY_GAME`. */
export function variableOfPort(port_name: string): string {
  return port_name.toUpperCase().replaceAll('-', '_')
}

/** The names of the placeholders of a game mode with these ports. */
export function placeholderNames(ports: readonly NamedPort[]): Set<string> {
  const names = new Set<string>([HOME_PLACEHOLDER])
  for (const name of LOBBY_PLACEHOLDERS) names.add(name).add(`PLATFORM_${name}`)
  for (const { name, port_range } of ports) {
    const variable = variableOfPort(name)
    if (port_range === null) names.add('PORT').add('HOST').add(`PORT_${variable}`).add(`PUBLIC_PORT_${variable}`)
    else names.add(`PORT_RANGE_MIN_${variable}`).add(`PORT_RANGE_MAX_${variable}`)
    names.add(`PUBLIC_HOST_${variable}`).add(`PUBLIC_URL_${variable}`)
  }
  return names
}

/** What stands between `${` and `}` and is none of the names, each once. */
export function unknownPlaceholders(text: string, names: ReadonlySet<string>): string[] {
  const found = [...text.matchAll(CANDIDATE)].flatMap(([, name]) => name ?? [])
  return [...new Set(found)].filter((name) => !names.has(name))
}

/** Replaces the placeholders. One without a value stays: versions from before there were placeholders may have it. */
export function fillPlaceholders(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(PLACEHOLDER, (whole, name: string | undefined) =>
    name === undefined ? '${' : (values.get(name) ?? whole),
  )
}
