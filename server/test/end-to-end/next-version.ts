// What tests of `muster upgrade` share: a copy of the checkout as another version, the command, and players who stay connected.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { findLobby } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { WebSocket } from 'ws'
import { temporaryFolder } from '../supervisor/started.ts'
import { until } from '../support/until.ts'

export const ROOT = join(import.meta.dirname, '../../..')
const COPIED = ['contract', 'protocols', 'server', 'sdk', 'cli', 'hub', 'examples', 'package.json']
const NEXT_VERSION = '99.0.0'

/** A player's WebSocket through the edge of a node. The game's server sends to it all the time. */
export async function stayConnected(t: TestContext, client: Client, port: string) {
  const seat = await client.call(findLobby, { body: { game_modes: ['default'] } })
  const token = encodeURIComponent(seat.player.token)
  const socket = new WebSocket(`ws://127.0.0.1:${port}/lobbies/${seat.lobby.lobby_id}/game/?token=${token}`)
  let messages = 0
  let end: string | null = null
  socket.on('message', () => messages++)
  socket.on('error', (error) => {
    end ??= error.message
  })
  socket.on('close', (code) => {
    end ??= `closed with ${code}`
  })
  t.after(() => socket.terminate())
  await once(socket, 'open')
  return {
    async requireOpen(): Promise<void> {
      const before = messages
      await until('messages of the game', () => end !== null || messages > before + 1)
      assert.equal(end, null, 'the connection stays open')
    },
  }
}

/** The checkout as another version: its own modules, and the libraries of the checkout. */
export function copyWithVersion(t: TestContext, wire_version: number): string {
  const to = temporaryFolder(t)
  const filter = (path: string): boolean => !path.includes('node_modules')
  for (const name of COPIED) cpSync(join(ROOT, name), join(to, name), { recursive: true, filter })
  const modules = join(to, 'node_modules')
  mkdirSync(join(modules, '@musterhost'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name !== '@musterhost' && name !== 'musterhost-sdk')
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  for (const name of ['contract', 'protocols', 'server', 'cli', 'hub']) {
    symlinkSync(join('../..', name), join(modules, '@musterhost', name))
  }
  symlinkSync('../sdk', join(modules, 'musterhost-sdk'))
  const manifest = join(to, 'server/package.json')
  const raised = readFileSync(manifest, 'utf8').replace(/"version": "[^"]*"/, `"version": "${NEXT_VERSION}"`)
  writeFileSync(manifest, raised)
  setWireVersion(to, wire_version)
  return to
}

export function setWireVersion(folder: string, wire_version: number): void {
  change(folder, 'server/src/wire/compatibility.ts', /\bWIRE_VERSION = \d+/, `WIRE_VERSION = ${wire_version}`)
}

/** The versions of the hand-over between edges that the program in the folder speaks. */
export function setHandOver(folder: string, { min, max }: { min: number; max: number }): void {
  const file = 'server/src/wire/compatibility.ts'
  change(folder, file, /HAND_OVER_VERSION = \d+/, `HAND_OVER_VERSION = ${max}`)
  change(folder, file, /HAND_OVER_VERSION_MIN = \d+/, `HAND_OVER_VERSION_MIN = ${min}`)
}

/** Changes a file of the program in the folder. Returns a function that restores it. */
export function change(folder: string, file: string, from: string | RegExp, to: string): () => void {
  const path = join(folder, file)
  const before = readFileSync(path, 'utf8')
  assert.ok(before.search(from) >= 0, `${file} has ${from}`)
  const after = before.replace(from, () => to)
  writeFileSync(path, after)
  return () => writeFileSync(path, before)
}

export async function upgrade(
  folder: string,
  settings: Record<string, string>,
): Promise<{ code: number; output: string }> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [join(folder, 'cli/src/main.ts'), 'upgrade'], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...settings },
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await once(child, 'close')) as [number]
  return { code, output: (await output).join('') }
}
