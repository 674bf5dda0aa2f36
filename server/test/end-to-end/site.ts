// A site of a new game, uploaded and deployed to its namespace prod as a developer would.
import {
  completeUpload,
  createGame,
  createGameCdnSite,
  createGameVersion,
  createGroup,
  getGameById,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { arrives } from '../cloud/steps.ts'
import type { Platform } from '../support/platform.ts'

export async function deploySite(
  platform: Platform,
  name_id: string,
  files: Record<string, string>,
): Promise<{ game_id: string; namespace_id: string }> {
  const { client } = platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Group' } })
  const body = { display_name: name_id, name_id, developer_group_id: group_id }
  const { game_id } = await client.call(createGame, { body })
  const params = { game_id }
  const prepared = Object.entries(files).map(([path, text]) => ({ path, content_length: Buffer.byteLength(text) }))
  const site = await client.call(createGameCdnSite, { params, body: { display_name: 'Site', files: prepared } })
  for (const presigned of site.presigned_requests) await arrives(platform, presigned, files[presigned.path]!)
  await client.call(completeUpload, { params: { upload_id: site.upload_id } })
  const version = { display_name: '1', config: { cdn: { site_id: site.site_id } } }
  const { version_id } = await client.call(createGameVersion, { params, body: version })
  const { game } = await client.call(getGameById, { params })
  const { namespace_id } = game.namespaces.find((namespace) => namespace.name_id === 'prod')!
  await client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
  return { game_id, namespace_id }
}
