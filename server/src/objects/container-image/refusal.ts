// The reasons of ARCHIVE_INVALID that only container images have, each with its remedy. An error of a layer names the layer
// and the path.
import { ApiError } from '@musterhost/contract'

const SENTENCES = {
  // The image as a whole.
  no_manifest:
    'The file has neither manifest.json nor index.json. Upload the output of `docker save`, or an OCI image layout as a tar.',
  no_index: 'The file has no index.json. Upload an OCI image layout as a tar, or choose the kind `docker_image`.',
  not_json: 'The document is not JSON of the expected form. Save the image again.',
  too_long: 'The document is longer than the platform accepts. Remove labels and history from the image.',
  no_image: 'It names no image. Save one image.',
  several_images: 'It contains several images. Save one image, without the others.',
  platform: 'It has no image for the platform of this machine. Build the image for it, or save that platform.',
  missing_blob: 'The file lacks a blob that the image names. Save the image again.',
  digest: 'The bytes do not have the digest that the image names. Save the image again, and upload it again.',
  digest_algorithm: 'The digest is not SHA-256. Save the image with SHA-256 digests.',
  size: 'The blob has another length than the image names. Save the image again, and upload it again.',
  media_type: 'The media type is no image, manifest, config or layer that can be unpacked. Save a plain image.',
  too_deep: 'Indexes name further indexes. Save one image.',
  too_many_layers: 'The image has more layers than the platform accepts. Squash its layers, and save it again.',
  no_layers: 'The image has no layers. Add the files of the server to it.',
  layer_count: 'The manifest and the config name different numbers of layers. Save the image again.',
  link_loop: 'Links in the file form a loop, or leave the file. Save the image again.',

  // The config of the image.
  user: 'The user of the image is not a number, and /etc/passwd and /etc/group of the image do not have it. Add the user to the image.',
  user_too_high:
    'The user of the image, or its group, has a number above 65535, which lobbies do not have. Set another USER.',
  working_folder: 'The working folder of the image is not an absolute path of plain names. Set another WORKDIR.',
  stop_signal: 'The stop signal of the image is unknown. Set another STOPSIGNAL.',
  environment: 'A variable of the image has no valid name, or is too long. Set another ENV.',
  command: 'The entrypoint or the command of the image is too long, or contains a NUL. Set a shorter one.',

  // An entry of a layer.
  whiteout: 'The whiteout names no file beside it. Build the layer again.',
  hard_link:
    'It is a hard link to something other than an earlier file of its layer. Copy the file in place of the link.',
  link_target: 'The target of the link is empty, too long, or contains a control character. Remove the link.',
  compression: 'It is compressed by a method other than gzip or zstd. Save the image with gzip or zstd.',
  image_device: 'It is a device. Remove it; the sandbox has a /dev of its own.',
} as const

export type ImageFault = keyof typeof SENTENCES

/** Characters of a name in a message. */
const SHOWN_LENGTH_MAX = 200

/** `sentence`: more exact than that of the reason. */
export function imageRefused(
  reason: ImageFault,
  entry: string | null = null,
  sentence: string = SENTENCES[reason],
): ApiError {
  const shown = entry === null ? null : entry.slice(0, SHOWN_LENGTH_MAX).toWellFormed().replaceAll('\0', '\uFFFD')
  const subject = shown === null ? '' : `${JSON.stringify(shown)}: `
  return new ApiError('ARCHIVE_INVALID', { entry: shown, reason }, { message: `${subject}${sentence}` })
}

/** Adds the layer to an error of one of its entries. Other errors are returned unchanged. */
export function ofLayer(error: unknown, layer: { number: number; name: string }): unknown {
  if (!(error instanceof ApiError) || error.code !== 'ARCHIVE_INVALID') return error
  const name = layer.name.slice(0, SHOWN_LENGTH_MAX).toWellFormed()
  const metadata = { ...error.metadata, layer: name, layer_number: layer.number }
  return new ApiError('ARCHIVE_INVALID', metadata, { message: `Layer ${layer.number} (${name}): ${error.message}` })
}
