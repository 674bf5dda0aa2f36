// The placeholders of a game mode's server, and the paths of its files.
import type { ErrorDetail } from '../errors.ts'
import type { GameModeConfig } from '../game-modes.ts'
import { placeholderNames, unknownPlaceholders } from '../placeholders.ts'

type Server = Pick<GameModeConfig, 'args' | 'image' | 'env' | 'files' | 'ports'>

/** `path` is that of the docker block of the mode. */
export function checkPlaceholders({ args, image, env, files, ports }: Server, path: readonly string[]): ErrorDetail[] {
  const names = placeholderNames(ports)
  const check = (text: string, at: readonly string[]): ErrorDetail[] =>
    unknownPlaceholders(text, names).map((name) => ({
      path: [...at],
      reason: 'unknown_placeholder',
      message: `There is no placeholder \${${name}} here. For a literal \${ write $\${. Those of this game mode are ${listOf(names)}.`,
    }))
  return [
    ...(image.entrypoint ?? []).flatMap((text, index) => check(text, [...path, 'entrypoint', String(index)])),
    ...args.flatMap((text, index) => check(text, [...path, 'args', String(index)])),
    ...Object.entries(env).flatMap(([name, text]) => check(text, [...path, 'env', name])),
    ...Object.entries(files).flatMap(([file, text]) => check(text, [...path, 'files', file])),
    ...checkFolders(Object.keys(files), path),
  ]
}

function listOf(names: ReadonlySet<string>): string {
  return [...names].filter((name) => !name.startsWith('PLATFORM_')).join(', ')
}

/** A file cannot be the folder of another one. */
function checkFolders(files: readonly string[], path: readonly string[]): ErrorDetail[] {
  return files.flatMap((file): ErrorDetail[] => {
    const folder = files.find((other) => file.startsWith(`${other}/`))
    if (folder === undefined) return []
    const message = `${folder} is a file, so ${file} cannot be in it. Rename one of them.`
    return [{ path: [...path, 'files', file], reason: 'conflicts', message }]
  })
}
