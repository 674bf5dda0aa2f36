// Values of a docker block about a container image, beyond their shape.
import type { ErrorDetail } from '../errors.ts'
import { imageOverridesOf } from '../image-config.ts'
import type { VersionConfig } from '../version-config.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

/** Number of a user or group. */
const ID_MAX = 65_535

/** `path` is the docker block's. */
export function checkImageMembers(docker: Docker, path: readonly string[]): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  const { working_folder, user } = imageOverridesOf(docker)
  if (working_folder?.split('/').some((name) => name === '..' || name === '.')) {
    const message = `The folder ${working_folder} contains . or ... Write the path without them.`
    errors.push({ path: [...path, 'working_folder'], reason: 'invalid', message })
  }
  if (user !== null && (user.uid > ID_MAX || user.gid > ID_MAX)) {
    const message = `The user ${docker.user} has a number above ${ID_MAX}. Choose a lower one.`
    errors.push({ path: [...path, 'user'], reason: 'too_high', message })
  }
  return errors
}
