// Arguments in the words of a shell. No shell reads the command line of a server, so they would reach it as they are.
import { dockerMemberPath } from './docker-block.ts'
import { gameModesOf } from './game-modes.ts'
import { placeholderNames } from './placeholders.ts'
import type { VersionConfig } from './version-config.ts'

/** Braces make it a placeholder. */
const VARIABLE = /\$([A-Z][A-Z0-9_]{0,63})/g
/** Programs that read a command line. */
const SHELLS = /(^|\/)(sh|bash|dash|ash|zsh)$/

export type ShellWord = { path: string[]; message: string }

/** Variables and `~` in `args` that are meant for a shell, each with what to write. Empty where the program is a shell. */
export function shellWords({ matchmaker, ...config }: VersionConfig): ShellWord[] {
  if (matchmaker === undefined) return []
  const found = [...gameModesOf({ ...config, matchmaker }).values()].flatMap(({ name, args, ports, image }) => {
    const command = [...(image.entrypoint ?? []), ...args]
    if (command.some((word) => SHELLS.test(word))) return []
    const names = placeholderNames(ports)
    return args.flatMap((text, index) =>
      remediesOf(text, names).map((message) => ({
        path: dockerMemberPath(matchmaker, name, ['args', String(index)]),
        message,
      })),
    )
  })
  return [...new Map(found.map((one) => [`${one.path.join('\n')}\n${one.message}`, one])).values()]
}

function remediesOf(text: string, names: ReadonlySet<string>): string[] {
  const variables = [...text.matchAll(VARIABLE)].flatMap(([, name = '']) => (names.has(name) ? [name] : []))
  const unfilled = [...new Set(variables)].map(
    (name) => `No shell reads args, so $${name} stays as it is. Write \${${name}}.`,
  )
  const is_home = text === '~' || text.startsWith('~/')
  return is_home ? [...unfilled, `No shell reads args, so ~ stays as it is. Write \${HOME}.`] : unfilled
}
