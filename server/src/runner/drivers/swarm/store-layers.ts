// Copies the layers of a checked image into the store of served images, each once.
import type { OpenedImage } from '../../../objects/container-image/image.ts'
import type { Blob, ServedImages } from '../../registry/served-images.ts'

/** Throws ApiError ARCHIVE_INVALID for an image that differs from its digests. */
export async function storeLayers(served: ServedImages, image: OpenedImage): Promise<Blob[]> {
  const layers: Blob[] = []
  for (const layer of image.layers) {
    const known = await served.blob(layer.diff_id)
    const stored =
      known ??
      (await served.store(async (onBytes) => {
        for await (const entry of layer.entries(onBytes)) {
          if (entry.kind === 'file') for await (const _ of entry.body);
        }
      }))
    if (stored.hex !== layer.diff_id) throw new Error(`The layer ${layer.name} was stored under another digest.`)
    layers.push(stored)
  }
  return layers
}
