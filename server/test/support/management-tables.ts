// What management writes, for tests that look whether a call has changed anything.
import type { Schema } from '../../src/database/schema.ts'

export const MANAGEMENT_TABLES = [
  'groups',
  'games',
  'namespaces',
  'versions',
  'uploads',
  'upload_files',
  'builds',
  'sites',
  'game_images',
  'users',
  'group_members',
  'group_invites',
  'device_links',
  'tokens',
  'revoked_tokens',
] as const satisfies readonly (keyof Schema)[]
