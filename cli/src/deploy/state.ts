// What a deploy remembers in `.muster/` of the project, so that the next one continues: which upload holds which contents. It
// has no secrets. Without it, or when it is damaged, everything is sent again.
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMissing } from './file-errors.ts'

export const STATE_FOLDER = '.muster'
const STATE_FILE = 'deploy.json'
const FILE_MODE = 0o600
/** Uploads that are remembered: those of several games, platforms and branches. */
const UPLOADS_MAX = 32

type UploadState = {
  url: string
  game_id: string
  kind: 'build' | 'site'
  /** Hash of all files (contentHashOf). */
  content_hash: string
  /** Id of the build or the site. */
  id: string
  upload_id: string
}

/** The remembered uploads, newest first. */
export function readState(folder: string): UploadState[] {
  try {
    const { uploads } = JSON.parse(readFileSync(join(folder, STATE_FOLDER, STATE_FILE), 'utf8')) as {
      uploads?: unknown
    }
    return Array.isArray(uploads) ? uploads.filter(isUploadState) : []
  } catch (error) {
    if (isMissing(error) || error instanceof SyntaxError) return []
    throw error
  }
}

export function rememberUpload(folder: string, upload: UploadState): void {
  const others = readState(folder).filter((other) => !isSameUpload(other, upload))
  const state = { uploads: [upload, ...others].slice(0, UPLOADS_MAX) }
  const state_folder = join(folder, STATE_FOLDER)
  mkdirSync(state_folder, { recursive: true })
  const file = join(state_folder, STATE_FILE)
  writeFileSync(`${file}.partial`, `${JSON.stringify(state, null, 2)}\n`, { mode: FILE_MODE })
  // The mode above is only that of a new file.
  chmodSync(`${file}.partial`, FILE_MODE)
  renameSync(`${file}.partial`, file)
}

const MEMBERS = ['url', 'game_id', 'kind', 'content_hash', 'id', 'upload_id'] as const

function isUploadState(value: unknown): value is UploadState {
  if (typeof value !== 'object' || value === null) return false
  return MEMBERS.every((member) => typeof (value as Record<string, unknown>)[member] === 'string')
}

function isSameUpload(a: UploadState, b: UploadState): boolean {
  return a.url === b.url && a.game_id === b.game_id && a.kind === b.kind && a.content_hash === b.content_hash
}
