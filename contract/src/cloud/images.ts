// Logos and banners of games: prepare -> PUT the bytes to the presigned URL -> complete. The format is detected from the
// bytes: PNG, JPEG, GIF or WebP. A completed picture replaces the previous one.
import Type from 'typebox'
import { GameId, UploadId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'
import { PrepareFile, PresignedRequest } from './uploads.ts'

const { path, content_type, content_length } = PrepareFile.properties
const UPLOAD_ERRORS = ['GAME_NOT_FOUND', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'QUOTA_REACHED'] as const
const COMPLETE_ERRORS = ['GAME_NOT_FOUND', 'UPLOAD_NOT_FOUND', 'UPLOAD_INCOMPLETE', 'IMAGE_INVALID'] as const

const defaults = {
  service: 'api',
  method: 'POST',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
} as const

const prepare = {
  params: object({ game_id: GameId }),
  body: object({ path, mime: content_type, content_length }),
  response: object({ upload_id: UploadId, presigned_request: PresignedRequest }),
  errors: UPLOAD_ERRORS,
}
const complete = { params: object({ game_id: GameId, upload_id: UploadId }), response: Empty, errors: COMPLETE_ERRORS }

export const ImageUrl = Type.Optional(Type.String({ description: 'URL of the picture. Absent until one is uploaded.' }))

export const gameLogoUploadPrepare = operation({
  ...defaults,
  ...prepare,
  id: 'games.gameLogoUploadPrepare',
  path: '/cloud/games/{game_id}/logo-upload/prepare',
  summary: 'Prepares the upload of a logo: PNG, JPEG, GIF or WebP, smaller than 5 MB.',
})

export const gameLogoUploadComplete = operation({
  ...defaults,
  ...complete,
  id: 'games.gameLogoUploadComplete',
  path: '/cloud/games/{game_id}/logo-upload/{upload_id}/complete',
  summary: 'Completes the upload: the picture becomes the logo of the game. A repeated call changes nothing.',
})

export const gameBannerUploadPrepare = operation({
  ...defaults,
  ...prepare,
  id: 'games.gameBannerUploadPrepare',
  path: '/cloud/games/{game_id}/banner-upload/prepare',
  summary: 'Prepares the upload of a banner: PNG, JPEG, GIF or WebP, smaller than 10 MB.',
})

export const gameBannerUploadComplete = operation({
  ...defaults,
  ...complete,
  id: 'games.gameBannerUploadComplete',
  path: '/cloud/games/{game_id}/banner-upload/{upload_id}/complete',
  summary: 'Completes the upload: the picture becomes the banner of the game. A repeated call changes nothing.',
})
