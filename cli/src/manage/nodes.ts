// The nodes of a platform: their load, and taking one out of service.
import { setTimeout as sleep } from 'node:timers/promises'
import { cancelNodeDrain, drainNode, listNodes, type ResponseOf, removeNode } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession, type Session } from '../session.ts'
import { counted, printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

type Node = ResponseOf<typeof listNodes>['nodes'][number]
type DrainOptions = GlobalOptions & { atMatchEnd?: boolean; deadline?: number; wait?: boolean; cancel?: boolean }

/** Between two reads of a node that drains. */
const PROGRESS_PAUSE_MS = 1000
const MS_PER_S = 1000

export async function showNodes(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client } = await openSession(terminal, options)
  const { nodes, is_complete } = await client.call(listNodes, {})
  if (terminal.is_json) return terminal.json({ nodes, is_complete })
  const has_links = nodes.some(({ link }) => link !== undefined)
  printTable(
    terminal,
    nodes,
    [
      { title: 'NODE', text: ({ node_id }) => node_id, is_whole: true },
      { title: 'STATE', text: ({ state }) => state },
      { title: 'REGIONS', text: ({ regions }) => regions.join(',') || '-' },
      { title: 'VERSION', text: ({ version }) => version ?? '-' },
      { title: 'LOBBIES', text: ({ lobby_count }) => String(lobby_count), align: 'right' },
      { title: 'PLAYERS', text: ({ player_count }) => String(player_count), align: 'right' },
      { title: 'CORES', text: ({ cpu_cores, cpu_cores_max }) => useText(cpu_cores, cpu_cores_max), align: 'right' },
      { title: 'MIB', text: ({ memory_mb, memory_mb_max }) => useText(memory_mb, memory_mb_max), align: 'right' },
      ...(has_links ? [{ title: 'LINK', text: linkText, align: 'right' as const }] : []),
      { title: 'SEEN', text: ({ seen_ts }) => (seen_ts === undefined ? 'never' : ago(terminal, seen_ts)) },
    ],
    'No node reports. Does the platform run? muster doctor',
  )
  if (!is_complete) terminal.note(`There are more nodes: these are the first ${nodes.length} by name.`)
}

/** The round trip over the link of a node that has joined. */
function linkText({ link, state }: Node): string {
  if (link === undefined) return '-'
  if (state === 'away') return 'down'
  return link.round_trip_ms === undefined ? 'new' : `${Math.round(link.round_trip_ms)} ms`
}

export async function drain(terminal: Terminal, node_id: string, options: DrainOptions): Promise<void> {
  const { atMatchEnd, deadline, cancel, wait } = options
  if (cancel && (atMatchEnd !== undefined || deadline !== undefined || wait !== undefined)) {
    throw new Failure('--cancel takes no other option of drain.', { exit_code: EXIT.usage })
  }
  const session = await openSession(terminal, options)
  const { node } = cancel
    ? await session.client.call(cancelNodeDrain, { body: { node_id } })
    : await session.client.call(drainNode, {
        body: {
          node_id,
          ...(atMatchEnd ? { at_match_end: true } : {}),
          ...(deadline === undefined ? {} : { deadline_s: Math.ceil(deadline / MS_PER_S) }),
        },
      })
  if (wait) await waitUntilDrained(terminal, session, node_id)
  if (terminal.is_json) return terminal.json({ node })
  if (cancel) terminal.note(`${node_id} gets lobbies again.`)
  else if (!wait) {
    terminal.note(`${node_id} gets no new lobbies. ${remaining(node)}`)
    terminal.note(`Cancel it: muster nodes drain ${node_id} --cancel`)
  }
}

export async function remove(
  terminal: Terminal,
  node_id: string,
  options: GlobalOptions & RemovalOptions & { force?: boolean },
): Promise<void> {
  const { client } = await openSession(terminal, options)
  const end = options.force ? ' Lobbies that it runs end, and their players lose their seats.' : ''
  await confirmRemoval(terminal, `Remove the node ${node_id}?${end}`, options)
  const { nodes } = await client.call(listNodes, {})
  const has_joined = nodes.find((node) => node.node_id === node_id)?.link !== undefined
  await client.call(removeNode, { body: { node_id, ...(options.force ? { force: true } : {}) } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Removed ${node_id}.`)
  const command = has_joined ? `invite --name ${node_id}` : `drain ${node_id} --cancel`
  terminal.note(`Take it back: muster nodes ${command}`)
}

async function waitUntilDrained(terminal: Terminal, { client }: Session, node_id: string): Promise<void> {
  let shown = ''
  for (;;) {
    const { nodes } = await client.call(listNodes, {})
    const node = nodes.find((one) => one.node_id === node_id)
    if (node?.drain === undefined) throw new Failure(`The drain of ${node_id} was cancelled.`)
    const text = remaining(node)
    if (text !== shown) terminal.note(`${node_id}: ${text}`)
    shown = text
    if (node.lobby_count === 0) return
    await sleep(PROGRESS_PAUSE_MS, undefined, { signal: terminal.signal })
  }
}

function remaining({ lobby_count, player_count, drain: drained }: Node): string {
  if (lobby_count === 0) return 'It runs no lobby.'
  const empty = lobby_count === 1 ? 'lobby ends when it is empty' : 'lobbies end when they are empty'
  const end = drained?.deadline_ts === undefined ? '' : `, or at ${drained.deadline_ts}`
  return `${lobby_count} ${empty}${end}, with ${counted(player_count, 'player')}.`
}

function useText(used: number, limit: number | undefined): string {
  return limit === undefined ? String(used) : `${used}/${limit}`
}
