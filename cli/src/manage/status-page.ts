// The status page of a game, and its incidents.
import {
  createStatusIncident,
  deleteStatusIncident,
  getStatusPage,
  listStatusIncidents,
  putStatusPage,
  type StatusIncident,
  type StatusPage,
  updateStatusIncident,
} from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openGame } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

/** `domain`: false: none any more. */
export type StatusPageOptions = GlobalOptions & { title?: string; text?: string; domain?: string | boolean }
export type UpdateOptions = GlobalOptions & {
  state: StatusIncident['state']
  impact?: StatusIncident['impact']
  text: string
  title?: string
}
export type IncidentOptions = Omit<UpdateOptions, 'title'> & { impact: StatusIncident['impact'] }

export async function showPage(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const { status_page } = await client.call(getStatusPage, { params })
  terminal.note(`Status page of ${where}`)
  if (terminal.is_json) return terminal.json({ status_page })
  printPage(terminal, status_page)
}

function printPage(terminal: Terminal, { is_enabled, url, state, title, text, measured_ts }: StatusPage): void {
  const lines: [string, string][] = [
    ['page', is_enabled ? `on, ${url}` : 'off. Turn it on: muster status-page on'],
    ...(is_enabled ? ([['shows', state]] as [string, string][]) : []),
    ...(measured_ts === undefined ? [] : ([['measured', ago(terminal, measured_ts)]] as [string, string][])),
    ...(title === undefined ? [] : ([['title', title]] as [string, string][])),
    ...(text === undefined ? [] : ([['text', text]] as [string, string][])),
  ]
  for (const [name, value] of lines) terminal.print(`${name.padEnd('measured'.length)}  ${value}`)
}

export async function enablePage(terminal: Terminal, options: StatusPageOptions): Promise<void> {
  const { session, client, params, where } = await openGame(terminal, options)
  const { status_page: former } = await client.call(getStatusPage, { params })
  const { title = former.title, text = former.text } = options
  const named = typeof options.domain === 'string' ? options.domain : former.domain
  const domain = options.domain === false ? undefined : named
  const namespace_id = options.namespace === undefined ? former.namespace_id : (await session.namespace()).namespace_id
  const body = {
    ...{ is_enabled: true, namespace_id },
    ...(title === undefined ? {} : { title }),
    ...(text === undefined ? {} : { text }),
    ...(domain === undefined ? {} : { domain }),
  }
  const { status_page } = await client.call(putStatusPage, { params, body })
  if (terminal.is_json) return terminal.json({ status_page })
  terminal.note(`The status page of ${where} is on.`)
  terminal.print(status_page.url)
}

export async function disablePage(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const { status_page: former } = await client.call(getStatusPage, { params })
  const { namespace_id, title, text, domain } = former
  const body = {
    ...{ is_enabled: false, namespace_id },
    ...(title === undefined ? {} : { title }),
    ...(text === undefined ? {} : { text }),
    ...(domain === undefined ? {} : { domain }),
  }
  const { status_page } = await client.call(putStatusPage, { params, body })
  if (terminal.is_json) return terminal.json({ status_page })
  terminal.note(`The status page of ${where} is off.`)
}

export async function listIncidents(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  const { incidents } = await client.call(listStatusIncidents, { params })
  terminal.note(`Incidents of ${where}`)
  if (terminal.is_json) return terminal.json({ incidents })
  printTable(
    terminal,
    incidents,
    [
      { title: 'ID', text: ({ incident_id }) => incident_id, is_whole: true },
      { title: 'WRITTEN', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'STATE', text: ({ state }) => state },
      { title: 'IMPACT', text: ({ impact }) => impact },
      { title: 'TITLE', text: ({ title }) => title },
    ],
    'There is no incident. Write one: muster status-page report "Games start slowly" --text "We look into it."',
  )
}

export async function reportIncident(terminal: Terminal, title: string, options: IncidentOptions): Promise<void> {
  const { state, impact, text } = options
  const { client, params, where } = await openGame(terminal, options)
  const { incident_id } = await client.call(createStatusIncident, { params, body: { title, impact, state, text } })
  if (terminal.is_json) return terminal.json({ incident_id })
  terminal.note(`Wrote the incident of ${where}. Its id:`)
  terminal.print(incident_id)
}

export async function updateIncident(terminal: Terminal, incident_id: string, options: UpdateOptions): Promise<void> {
  const { state, impact, text, title } = options
  const { client, params, where } = await openGame(terminal, options)
  const body = { state, text, ...(title === undefined ? {} : { title }), ...(impact === undefined ? {} : { impact }) }
  const result = await client.call(updateStatusIncident, { params: { ...params, incident_id }, body })
  if (terminal.is_json) return terminal.json(result)
  terminal.note(`The incident of ${where} is ${state}.`)
}

export async function deleteIncident(
  terminal: Terminal,
  incident_id: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const { client, params, where } = await openGame(terminal, options)
  await confirmRemoval(terminal, `Delete the incident ${incident_id} of ${where}? Resolve it to keep it.`, options)
  await client.call(deleteStatusIncident, { params: { ...params, incident_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the incident of ${where}.`)
}
