// Logos and banners of games: prepare -> PUT the bytes to the presigned address -> complete. What a picture is, its bytes
// say: PNG, JPEG, GIF or WebP. The one that is completed takes the place of the one before it.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object } from '../records.ts'
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
  params: object({ game_id: Id }),
  body: object({ path, mime: content_type, content_length }),
  response: object({ upload_id: Id, presigned_request: PresignedRequest }),
  errors: UPLOAD_ERRORS,
}
const complete = { params: object({ game_id: Id, upload_id: Id }), response: Empty, errors: COMPLETE_ERRORS }

export const ImageUrl = Type.Optional(Type.String({ description: 'Where the picture is; absent until there is one.' }))

export const gameLogoUploadPrepare = operation({
  ...defaults,
  ...prepare,
  id: 'games.gameLogoUploadPrepare',
  path: '/cloud/games/{game_id}/logo-upload/prepare',
  summary: "Prepares the upload of a game's logo: PNG, JPEG, GIF or WebP of less than 5 MB.",
})

export const gameLogoUploadComplete = operation({
  ...defaults,
  ...complete,
  id: 'games.gameLogoUploadComplete',
  path: '/cloud/games/{game_id}/logo-upload/{upload_id}/complete',
  summary: 'Makes an uploaded picture the logo of the game. Completing it again changes nothing.',
})

export const gameBannerUploadPrepare = operation({
  ...defaults,
  ...prepare,
  id: 'games.gameBannerUploadPrepare',
  path: '/cloud/games/{game_id}/banner-upload/prepare',
  summary: "Prepares the upload of a game's banner: PNG, JPEG, GIF or WebP of less than 10 MB.",
})

export const gameBannerUploadComplete = operation({
  ...defaults,
  ...complete,
  id: 'games.gameBannerUploadComplete',
  path: '/cloud/games/{game_id}/banner-upload/{upload_id}/complete',
  summary: 'Makes an uploaded picture the banner of the game. Completing it again changes nothing.',
})
