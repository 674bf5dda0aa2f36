// The options that commands share. A command shows only those that it uses.
import { type Command, InvalidArgumentError } from 'commander'

export type GlobalOptions = {
  json?: boolean
  ci?: boolean
  context?: string
  url?: string
  game?: string
  namespace?: string
}

export function withOutput(command: Command): Command {
  return command
    .option('--json', 'print JSON, with the member names of the API')
    .option('--ci', 'ask nothing and draw no bars, as without a terminal')
}

/** For commands that call a platform. */
export function withPlatform(command: Command): Command {
  return withOutput(command)
    .option('--context <name>', 'the platform of this context (muster context list)')
    .option('--url <url>', 'the address of the platform; default MUSTER_URL')
}

/** For commands that act on a game. @public */
export function withGame(command: Command): Command {
  return withPlatform(command).option('--game <name>', 'name or id of the game; default GAME_ID, or the only game')
}

/** For commands that act on a namespace. */
export function withNamespace(command: Command): Command {
  return withGame(command).option('--namespace <name>', 'name or id of the namespace; default NAMESPACE_ID, or prod')
}

export function parseWhole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d{1,10}$/.test(text) && value >= min && value <= max) return value
    throw new InvalidArgumentError(`It takes a whole number from ${min} to ${max}.`)
  }
}
