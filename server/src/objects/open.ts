// Opens the store that the settings name.
import { join } from 'node:path'
import { openFilesystemObjects } from './filesystem.ts'
import { newObjectKey, type Objects } from './objects.ts'
import { type BucketFault, findBucketFault } from './s3/check.ts'
import { S3Client, type S3Options } from './s3/client.ts'
import { incomingPathOf, openS3Objects } from './s3/s3-objects.ts'

type Service = { endpoint: string; region: string; access_key_id: string; secret_access_key: string }

/** What of the settings decides. */
export type ObjectsConfig = {
  data_dir: string
  s3: Service | null
  objects: { bucket: string; prefix: string; upload_endpoint: string | null } | null
}

export function openObjects({ data_dir, s3, objects }: ObjectsConfig, options: S3Options): Objects {
  if (objects === null) return openFilesystemObjects(join(data_dir, 'objects'))
  if (s3 === null) throw new Error('A bucket needs an S3 service.')
  const { upload_endpoint, bucket, prefix } = objects
  const client = new S3Client({ ...s3, bucket, prefix }, options)
  return openS3Objects(client, { incoming_folder: transferFolder(data_dir), upload_endpoint })
}

/** Null: the store can be used. A folder always can. */
export async function findStoreFault({ s3, objects }: ObjectsConfig, options: S3Options): Promise<BucketFault | null> {
  if (objects === null || s3 === null) return null
  const { bucket, prefix } = objects
  const client = new S3Client({ ...s3, bucket, prefix }, options)
  return findBucketFault(client, options.now).finally(() => client.close())
}

/** Returns an address in the bucket that a file would be sent to, unsigned; null: uploads go through the api. */
export function directUploadUrl({ s3, objects }: ObjectsConfig, options: S3Options): string | null {
  if (objects === null || s3 === null || objects.upload_endpoint === null) return null
  const { bucket, prefix, upload_endpoint } = objects
  const client = new S3Client({ ...s3, bucket, prefix }, options)
  client.close()
  return upload_endpoint + client.pathOf(incomingPathOf(newObjectKey()))
}

/** Folder of files on their way to a bucket or from it. They can be lost. */
export function transferFolder(data_dir: string): string {
  return join(data_dir, 'cache', 'transfer')
}
