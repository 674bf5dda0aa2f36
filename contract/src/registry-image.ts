// The name of a container image in a registry: HOST/NAME@sha256:DIGEST. Only a digest names the same bytes for ever.

/** Characters of such a name. */
export const IMAGE_NAME_LENGTH_MAX = 512
const HOST = '(?<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)'
const REPOSITORY = '(?<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)'
const TAG = '(?::(?<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?'
const NAME = new RegExp(`^${HOST}/${REPOSITORY}${TAG}(?:@(?<digest>sha256:[0-9a-f]{64}))?$`)

/** `host`: with its port, if it has one. */
export type RegistryImage = { host: string; repository: string; digest: string }
/** A registry that the operator allows. `prefix`: the beginning of the names of images there; empty: all. */
export type AllowedRegistry = { host: string; prefix: string }

export type RegistryImageFault = { reason: 'invalid' | 'needs_digest'; message: string }

export function parseRegistryImage(text: string): RegistryImage | RegistryImageFault {
  const { host, repository, tag, digest } = NAME.exec(text)?.groups ?? {}
  const is_host = host !== undefined && (/[.:]/.test(host) || host === 'localhost')
  if (!is_host || repository === undefined || text.length > IMAGE_NAME_LENGTH_MAX) {
    const message = `${JSON.stringify(text.slice(0, IMAGE_NAME_LENGTH_MAX))} is no image of a registry. Write it as registry.example.com/name@sha256:DIGEST.`
    return { reason: 'invalid', message }
  }
  if (digest === undefined) {
    const named = tag === undefined ? 'has no digest' : `names the tag ${tag}, which may change`
    const message = `The image ${text} ${named}. Write its digest: ${host}/${repository}@sha256:DIGEST, as docker images --digests shows it.`
    return { reason: 'needs_digest', message }
  }
  return { host, repository, digest }
}

/** Whether a registry of the list has this image. A prefix is whole names between slashes. */
export function isAllowedImage({ host, repository }: RegistryImage, registries: readonly AllowedRegistry[]): boolean {
  return registries.some(
    (allowed) =>
      allowed.host === host &&
      (allowed.prefix === '' || repository === allowed.prefix || repository.startsWith(`${allowed.prefix}/`)),
  )
}
