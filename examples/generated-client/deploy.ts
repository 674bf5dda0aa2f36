// A stranger's program: all it knows of the platform is openapi.json, from which a public generator has made api.ts. It
// creates a game, uploads a build and a site, makes a version of them and deploys it.
//
//   npm ci && npm run generate
//   MUSTER_TOKEN=$(cat ../../.muster/admin-token) npm run deploy -- BUILD.tar.gz SITE_FOLDER
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

type PresignedRequest = components['schemas']['PresignedRequest']
type VersionConfig = components['schemas']['VersionConfig']

const [build_path, site_folder] = process.argv.slice(2)
if (build_path === undefined || site_folder === undefined) throw new Error('deploy.ts BUILD.tar.gz SITE_FOLDER')
const { MUSTER_URL = 'http://localhost', MUSTER_TOKEN } = process.env

const client = createClient<paths>({ baseUrl: MUSTER_URL, headers: { authorization: `Bearer ${MUSTER_TOKEN}` } })

const { group_id } = answerOf(await client.POST('/group/groups', { body: { display_name: 'Strangers' } }))
const { game_id } = answerOf(
  await client.POST('/cloud/games', { body: { display_name: 'Stranger', developer_group_id: group_id } }),
)
const of_game = { params: { path: { game_id } } }

const build_id = await uploadBuild(await readFile(build_path))
const site_id = await uploadSite(await readFiles(site_folder))
const config: VersionConfig = {
  cdn: { site_id },
  matchmaker: {
    game_modes: { default: { max_players: 4 } },
    docker: { image_id: build_id, args: ['node', 'server.mjs'], ports: { game: { protocol: 'http' } } },
  },
}
const { version_id } = answerOf(
  await client.POST('/cloud/games/{game_id}/versions', { ...of_game, body: { display_name: '1', config } }),
)

const { game } = answerOf(await client.GET('/cloud/games/{game_id}', of_game))
const namespace = game.namespaces.find(({ name_id }) => name_id === 'prod')
if (namespace === undefined) throw new Error('A new game has a namespace prod.')
const of_namespace = { params: { path: { game_id, namespace_id: namespace.namespace_id } } }
answerOf(
  await client.PUT('/cloud/games/{game_id}/namespaces/{namespace_id}/version', {
    ...of_namespace,
    body: { version_id },
  }),
)
const { token } = answerOf(
  await client.POST('/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public', of_namespace),
)
console.log(JSON.stringify({ name_id: game.name_id, version_id, public_token: token }))

async function uploadBuild(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const answer = await client.POST('/cloud/games/{game_id}/builds', {
    ...of_game,
    body: {
      display_name: 'Server',
      image_tag: 'server:1',
      image_file: { path: 'server.tar.gz', content_length: bytes.length },
    },
  })
  const { build_id, upload_id, image_presigned_request } = answerOf(answer)
  if (image_presigned_request === undefined) throw new Error('A build in one part has one address.')
  await put(image_presigned_request, bytes)
  await complete(upload_id)
  return build_id
}

async function uploadSite(files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>): Promise<string> {
  const answer = await client.POST('/cloud/games/{game_id}/cdn/sites', {
    ...of_game,
    body: {
      display_name: 'Site',
      files: [...files].map(([path, bytes]) => ({ path, content_length: bytes.length })),
    },
  })
  const { site_id, upload_id, presigned_requests } = answerOf(answer)
  for (const presigned of presigned_requests) await put(presigned, files.get(presigned.path)!)
  await complete(upload_id)
  return site_id
}

async function complete(upload_id: string): Promise<void> {
  answerOf(await client.POST('/cloud/uploads/{upload_id}/complete', { params: { path: { upload_id } } }))
}

async function put({ url, path }: PresignedRequest, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const response = await fetch(url, { method: 'PUT', body })
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
}

async function readFiles(folder: string): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    files.set(path.slice(join(folder, '/').length), await readFile(path))
  }
  return files
}

function answerOf<T>({ data, error }: { data?: T; error?: components['schemas']['Error'] }): T {
  if (error !== undefined) throw new Error(`${error.code}: ${error.message} ${error.documentation}`)
  if (data === undefined) throw new Error('There is neither an answer nor an error.')
  return data
}
