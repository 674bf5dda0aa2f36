// A page that plays in a party, in the place of the arena's own: the SDK as games get it, and what its README shows. Who
// comes without a code leads, and seats all by a button; everybody enters by the event.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import {
  completeUpload,
  createGameCdnSite,
  createGameVersion,
  getGameById,
  getGames,
  getGameVersionById,
  updateGameNamespaceVersion,
} from '@muster/contract'
import { createClient } from '@muster/contract/client'
import type { Arena } from './arena.ts'

const SDK = join(import.meta.dirname, '../../../sdk/src')
const MODULES = ['browser', 'player', 'request', 'error']

const PAGE = `<!doctype html><title>Party</title><button>Play</button><script type="module">
  import { socketUrl } from './sdk/browser.js'
  import { openPlayer } from './sdk/player.js'
  const party = (globalThis.party = {})
  const fail = (error) => { party.fault = String(error?.code ?? error) }
  const query = new URLSearchParams(location.search)
  try {
    const player = await openPlayer()
    player.watchSeats((seat) => {
      party.lobby_id = seat.lobby.lobby_id
      const socket = new WebSocket(socketUrl(seat.ports.game, '/', { token: seat.player.token, name: query.get('name') }))
      socket.onmessage = ({ data }) => { if (JSON.parse(data).type === 'welcome') party.welcome = true }
    }).catch(fail)
    if (query.has('code')) await player.joinParty(query.get('code'))
    else party.code = (await player.createParty()).code
    player.watchParty((now) => { party.size = now?.members.length ?? 0 }).catch(fail)
    document.querySelector('button').onclick = () => player.find({ game_modes: ['default'], party: true }).catch(fail)
  } catch (error) { fail(error) }
</script>`

/** Deploys a version that differs from the arena's in its site. */
export async function deployPage({ folder, settings }: Arena): Promise<void> {
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const client = createClient({ url, token: readFileSync(join(folder, 'admin-token'), 'utf8').trim() })
  const { games } = await client.call(getGames, {})
  const params = { game_id: games.find(({ name_id }) => name_id === 'arena')!.game_id }
  const { game } = await client.call(getGameById, { params })
  const { namespace_id, version_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const { version } = await client.call(getGameVersionById, { params: { ...params, version_id } })

  const files = new Map([['index.html', Buffer.from(PAGE)]])
  for (const name of MODULES) files.set(`sdk/${name}.js`, await javascript(name))
  const site = await client.call(createGameCdnSite, {
    params,
    body: { display_name: 'Party', files: [...files].map(([path, { length }]) => ({ path, content_length: length })) },
  })
  for (const { path, url: address } of site.presigned_requests) {
    const sent = await fetch(address, { method: 'PUT', body: new Uint8Array(files.get(path)!) })
    if (!sent.ok) throw new Error(`${path} was not taken: ${await sent.text()}`)
  }
  await client.call(completeUpload, { params: { upload_id: site.upload_id } })
  const config = { ...version.config, cdn: { site_id: site.site_id } }
  const made = await client.call(createGameVersion, { params, body: { display_name: 'party', config } })
  const body = { version_id: made.version_id }
  await client.call(updateGameNamespaceVersion, { params: { ...params, namespace_id }, body })
}

async function javascript(name: string): Promise<Buffer<ArrayBuffer>> {
  const text = stripTypeScriptTypes(await readFile(join(SDK, `${name}.ts`), 'utf8'))
  return Buffer.from(text.replaceAll(/(from '\.\/\w+)\.ts'/g, "$1.js'"))
}
