// The ids that operations and records carry. Each has the form that the platform gives it: a lower-case UUID.
import Type from 'typebox'

export const Id = (description: string) => Type.String({ format: 'uuid', description })

export const BuildId = Id('Id of the build.')
export const DeployId = Id('Id of the deploy.')
export const GameId = Id('Id of the game.')
export const GroupId = Id('Id of the group.')
export const IdentityId = Id('Id of the person or player.')
export const LobbyId = Id('Id of the lobby.')
export const NamespaceId = Id('Id of the namespace.')
export const PlayerId = Id('Id of the player in the lobby: of one seat, not of a person.')
export const RayId = Id('Ray id of a request: the `x-ray-id` header of its response, or `ray_id` of its error body.')
export const RegionId = Id('Id of the region.')
export const SiteId = Id('Id of the site.')
export const TokenId = Id('Id of the token. It is not secret.')
export const UploadId = Id('Id of the upload.')
export const VersionId = Id('Id of the version.')
