// Data of one player of a game.
import { type Erasure, erasePlayerData, exportPlayerData, listErasures } from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openGame } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { downloadFile } from './download-file.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

export type PlayerOptions = GlobalOptions & { identity?: string; address?: string }

function subjectOf({ identity, address }: PlayerOptions): { identity_id?: string; address?: string } {
  return {
    ...(identity === undefined ? {} : { identity_id: identity }),
    ...(address === undefined ? {} : { address }),
  }
}

export async function exportPlayer(terminal: Terminal, file: string, options: PlayerOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const { url } = await client.call(exportPlayerData, { params, body: subjectOf(options) })
  const { path, byte_count } = await downloadFile(terminal, url, file)
  if (terminal.is_json) return terminal.json({ file: path, byte_count })
  terminal.print(`${path} has the data of the player in ${where} (${byte_count} bytes).`)
}

export async function erasePlayer(terminal: Terminal, options: PlayerOptions & RemovalOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const subject = subjectOf(options)
  await confirmRemoval(terminal, `Erase the data of ${Object.values(subject).join(' and ')} in ${where}?`, options)
  const { erasure } = await client.call(erasePlayerData, { params, body: subject })
  if (terminal.is_json) return terminal.json({ erasure })
  terminal.print(`Erased: ${countsText(erasure)}.`)
  terminal.print(`Left: ${leftText(erasure)}.`)
}

export async function listPlayerErasures(terminal: Terminal, options: PlayerOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const { erasures } = await client.call(listErasures, { params, query: subjectOf(options) })
  terminal.note(`Erasures of players of ${where}`)
  if (terminal.is_json) return terminal.json({ erasures })
  printTable(
    terminal,
    erasures,
    [
      { title: 'BEGUN', text: ({ begin_ts }) => ago(terminal, begin_ts) },
      { title: 'ENDED', text: ({ end_ts }) => (end_ts === undefined ? 'interrupted' : ago(terminal, end_ts)) },
      { title: 'ERASED', text: countsText },
      { title: 'LEFT', text: leftText },
    ],
    'No player was erased.',
  )
}

function countsText({ counts }: Erasure): string {
  const found = Object.entries(counts).filter(([, count]) => count > 0)
  return found.map(([name, count]) => `${name} ${count}`).join(', ') || 'nothing'
}

function leftText({ left }: Erasure): string {
  return left
    .map(({ what, until_ts }) => (until_ts === undefined ? what : `${what} until ${until_ts.slice(0, 10)}`))
    .join(', ')
}
