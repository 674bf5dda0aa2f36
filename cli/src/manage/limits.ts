// Limits of a namespace: how many lobbies it may have, and how many players one client.
import { getGameNamespaceById, MatchmakerLimits, updateGameNamespaceMatchmakerConfig } from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { printFields } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { openNamespace } from './games.ts'

const NAMES = [...Object.keys(MatchmakerLimits.properties), 'max_players']

export async function showLimits(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { session, params, where } = await openNamespace(terminal, options)
  const { namespace } = await session.client.call(getGameNamespaceById, { params })
  terminal.note(`Limits of ${where}`)
  if (terminal.is_json) return terminal.json(namespace.config.matchmaker)
  printFields(
    terminal,
    Object.entries(namespace.config.matchmaker).map(([name, value]) => [name, String(value)] as const),
  )
}

/** `changes` have the form `name=number`. */
export async function setLimits(terminal: Terminal, changes: readonly string[], options: GlobalOptions): Promise<void> {
  const body = Object.fromEntries(changes.map(parseChange))
  const { session, params, where } = await openNamespace(terminal, options)
  await session.client.call(updateGameNamespaceMatchmakerConfig, { params, body })
  terminal.note(`Changed the limits of ${where}. A lower limit removes no players.`)
  await showLimits(terminal, options)
}

function parseChange(change: string): [string, number] {
  const [name = '', value = ''] = change.split('=', 2)
  if (!NAMES.includes(name)) {
    throw new Failure(`${name} is not a limit.${didYouMean(name, NAMES)}`, {
      exit_code: EXIT.usage,
      remedy: `Limits: ${NAMES.join(', ')}`,
    })
  }
  if (!/^\d{1,10}$/.test(value)) {
    throw new Failure(`${name} takes a whole number: ${name}=8`, { exit_code: EXIT.usage })
  }
  return [name, Number(value)]
}
