// Values of a docker block about a container image, beyond their shape.
import type { ErrorDetail } from '../errors.ts'
import { imageOverridesOf } from '../image-config.ts'
import { type AllowedRegistry, isAllowedImage, parseRegistryImage } from '../registry-image.ts'
import type { VersionConfig } from '../version-config.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

/** Number of a user or group. */
const ID_MAX = 65_535

/** `path` is the docker block's. `registries`: null when the platform is unknown. */
export function checkImageMembers(
  docker: Docker,
  registries: readonly AllowedRegistry[] | null,
  path: readonly string[],
): ErrorDetail[] {
  const errors = docker.image === undefined ? [] : checkRegistryImage(docker, docker.image, registries, path)
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

function checkRegistryImage(
  { image_id }: Docker,
  image: string,
  registries: readonly AllowedRegistry[] | null,
  path: readonly string[],
): ErrorDetail[] {
  const at = [...path, 'image']
  const parsed = parseRegistryImage(image)
  if ('reason' in parsed) return [{ path: at, ...parsed }]
  if (image_id !== undefined) {
    const message = 'image and image_id exclude each other: both are the whole server. Remove one of them.'
    return [{ path: at, reason: 'conflicts', message }]
  }
  if (registries === null || isAllowedImage(parsed, registries)) return []
  const names = registries.map(({ host, prefix }) => (prefix === '' ? host : `${host}/${prefix}`))
  const allowed = names.length === 0 ? 'no registry' : `only ${names.join(', ')}`
  const message = `The platform allows ${allowed}, not ${parsed.host}/${parsed.repository}. Upload the image as a build, or its operator adds the registry to MUSTER_REGISTRIES.`
  return [{ path: at, reason: 'not_allowed', message }]
}
