// S3 services for tests, each with one bucket: a small strict one in this process (small-s3.ts), and OpenStack Swift with its
// S3 interface (swift.ts). Both verify signatures and hashes.
import type { TestContext } from 'node:test'
import { S3Client } from '../../src/objects/s3/client.ts'
import { freePorts } from '../support/free-ports.ts'
import { SmallS3 } from './small-s3.ts'

export const BUCKET = 'muster-test'

export type S3TestService = {
  endpoint: string
  region: string
  access_key_id: string
  secret_access_key: string
}

export type StoppableService = S3TestService & {
  /** From now on connections are refused. */
  stop: () => Promise<void>
  /** With what was stored before. */
  start: () => Promise<void>
  /** Gives the bucket a rule that pages of this origin may send files. */
  allowOrigin: (origin: string) => void
}

export async function startSmallS3(t: TestContext): Promise<StoppableService> {
  const [port] = (await freePorts(1)) as [number]
  const login = { region: 'us-east-1', access_key_id: 'small', secret_access_key: 'small secret' }
  const service = new SmallS3({ ...login, bucket: BUCKET })
  const start = (): Promise<void> => service.listen(port)
  const stop = (): Promise<void> => service.stop()
  const allowOrigin = (origin: string): void => {
    service.allowed_origin = origin
  }
  await start()
  t.after(stop)
  return { ...login, endpoint: `http://127.0.0.1:${port}`, stop, start, allowOrigin }
}

/** The settings of a platform whose files are below this prefix. */
export function s3Settings(service: S3TestService, prefix: string): Record<string, string> {
  return {
    MUSTER_OBJECTS: `s3://${BUCKET}/${prefix}`,
    MUSTER_S3_ENDPOINT: service.endpoint,
    MUSTER_S3_REGION: service.region,
    MUSTER_S3_ACCESS_KEY_ID: service.access_key_id,
    MUSTER_S3_SECRET_ACCESS_KEY: service.secret_access_key,
  }
}

export function clientOf(t: TestContext, service: S3TestService, prefix: string): S3Client {
  const { endpoint, region, access_key_id, secret_access_key } = service
  const place = { endpoint, region, access_key_id, secret_access_key, bucket: BUCKET, prefix }
  const client = new S3Client(place, { now: Date.now })
  t.after(() => client.close())
  return client
}
