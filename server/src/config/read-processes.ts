// Settings of the processes of a machine.
import type { Config } from './config.ts'
import { PROCESSES_MAX, type ProcessNumber } from './processes.ts'
import type { SettingsReader } from './read.ts'

const FORM = /^(\d{1,2})\/(\d{1,2})$/
/** Lobbies need the others. */
const CORES_PER_EDGE = 2

type Given = Pick<Config, 'matchmaker_port' | 'lobby_api_port' | 'mode'> & { cores: number }

export function readProcesses(
  read: SettingsReader,
  { matchmaker_port, lobby_api_port, mode, cores }: Given,
): Pick<Config, 'process' | 'process_counts' | 'matchmaker_ports'> {
  const process_number = readProcess(read)
  const matchmaker = readCount(read, 'MUSTER_MATCHMAKER_PROCESSES')
  const is_given = read.isSet('MUSTER_EDGE_PROCESSES')
  const edge = is_given ? readCount(read, 'MUSTER_EDGE_PROCESSES') : usualEdges(read, mode, cores)
  const length = Math.max(matchmaker, process_number.count)
  return {
    process: process_number,
    process_counts: { ...{ api: 1, runner: 1 }, matchmaker, edge },
    // Further processes have the ports that follow the one for lobbies.
    matchmaker_ports: Array.from({ length }, (_, number) => (number === 0 ? matchmaker_port : lobby_api_port + number)),
  }
}

/** On a machine of a developer, at a unix socket, on a node that joined and outside of Linux there is one. */
function usualEdges(read: SettingsReader, mode: Config['mode'], cores: number): number {
  const is_one = mode === 'development' || read.isSet('MUSTER_EDGE_SOCKET') || read.isSet('MUSTER_LINK')
  if (is_one || process.platform !== 'linux') return 1
  return Math.min(PROCESSES_MAX, Math.max(1, Math.floor(cores / CORES_PER_EDGE)))
}

function readCount(read: SettingsReader, name: 'MUSTER_MATCHMAKER_PROCESSES' | 'MUSTER_EDGE_PROCESSES'): number {
  const count = read.number(name)
  if (count < 1) read.mistakes.push(`${name} must be 1 at least.`)
  if (count > 1 && process.platform !== 'linux') {
    read.mistakes.push(
      `${name} must be 1 here: only Linux distributes the connections of a port over several processes.`,
    )
  }
  if (count > 1 && name === 'MUSTER_EDGE_PROCESSES' && read.isSet('MUSTER_EDGE_SOCKET')) {
    read.mistakes.push(`${name} must be 1 where MUSTER_EDGE_SOCKET is set: one process listens at a unix socket.`)
  }
  return Math.max(1, count)
}

function readProcess(read: SettingsReader): ProcessNumber {
  const text = read.text('MUSTER_PROCESS')
  const [, number = Number.NaN, count = Number.NaN] = (FORM.exec(text) ?? []).map(Number)
  if (number < count && count <= PROCESSES_MAX) return { number, count }
  read.mistakes.push(`MUSTER_PROCESS is ${JSON.stringify(text)}; the second of three processes is 1/3.`)
  return { number: 0, count: 1 }
}
