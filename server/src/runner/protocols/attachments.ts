// What the gateway of protocols (gateway.ts) knows of its lobbies, as files. The runner writes one for each lobby before the
// server starts, so that a gateway that starts again serves the same lobbies at the same ports.
//
//   <lobbies>/.platform/protocols/<version>/gateway.json     the gateway that runs: GatewayState
//   <lobbies>/.platform/protocols/<version>/<lobby id>.json  a lobby: Attachment, with its token
//   <lobbies>/.platform/protocols/<version>/<lobby id>.memory.json  what its protocol needs after a crash of the gateway
//
// Each version of the program has a folder and a gateway of its own. An earlier one serves its lobbies until they end.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProtocolName, ProtocolOptions } from '@musterhost/contract'
import type { LobbyFacts } from '@musterhost/protocols'
import { isLobbyId } from '../../lobby-logs/local.ts'
import { codeOf, type ProcessId } from '../../node/procfs.ts'
import { platformVersion } from '../../wire/platform-version.ts'
import { platformFolder } from '../folders/names.ts'

const STATE_FILE = 'gateway.json'
const LOBBY_FILE = /^([0-9a-f-]{36})\.json$/

export type Attachment = {
  protocol: ProtocolName
  options: ProtocolOptions
  facts: LobbyFacts
  /** Where the lobby calls the platform, and its token. */
  api_url: string
  token: string
  /** The edge checks the seats, so what the server reports of players has no effect. */
  has_edge_seats: boolean
  /** Secret of the protocol: unguessable. */
  secret: string
  /** From where the lobby's connections come; null: it shares the network of the machine, and has a listener of its own. */
  address: string | null
  /** Number of its own listener; 0: not chosen yet. */
  port: number
  /** Its first process; null: it has not started. */
  process: ProcessId | null
}

/** `port`: of the listener for lobbies with networks of their own. `secret`: admits to the control port. */
export type GatewayState = { process: ProcessId; control_port: number; port: number; secret: string }

export function gatewayFolder(lobbies_folder: string): string {
  return join(platformFolder(lobbies_folder), 'protocols', platformVersion())
}

/** Folders of all versions that had lobbies. */
export function gatewayFolders(lobbies_folder: string): string[] {
  const all = join(platformFolder(lobbies_folder), 'protocols')
  return existsSync(all) ? readdirSync(all).map((version) => join(all, version)) : []
}

export function writeAttachment(folder: string, attachment: Attachment): void {
  writeWhole(join(folder, `${attachment.facts.lobby_id}.json`), attachment)
}

export function removeAttachment(folder: string, lobby_id: string): void {
  rmSync(join(folder, `${lobby_id}.json`), { force: true })
  rmSync(memoryFile(folder, lobby_id), { force: true })
}

export function writeMemory(folder: string, lobby_id: string, value: unknown): void {
  writeWhole(memoryFile(folder, lobby_id), value)
}

/** Null: there is none. */
export function readMemory(folder: string, lobby_id: string): unknown {
  return readWhole(memoryFile(folder, lobby_id))
}

function memoryFile(folder: string, lobby_id: string): string {
  return join(folder, `${lobby_id}.memory.json`)
}

/** Null: there is none. */
export function readAttachment(folder: string, lobby_id: string): Attachment | null {
  return isLobbyId(lobby_id) ? (readWhole(join(folder, `${lobby_id}.json`)) as Attachment | null) : null
}

export function attachedLobbies(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => LOBBY_FILE.exec(name)?.[1] ?? [])
}

export function writeState(folder: string, state: GatewayState): void {
  writeWhole(join(folder, STATE_FILE), state)
}

/** Null: no gateway has run. */
export function readState(folder: string): GatewayState | null {
  return readWhole(join(folder, STATE_FILE)) as GatewayState | null
}

function writeWhole(path: string, content: unknown): void {
  const draft = `${path}.${process.pid}.new`
  writeFileSync(draft, JSON.stringify(content), { mode: 0o600 })
  renameSync(draft, path)
}

function readWhole(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}
