// S3 services for tests, each with one bucket: s3rver, a small one from npm, in this process; and OpenStack Swift with its S3
// interface (swift.ts), which verifies signatures and hashes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import S3rver from 's3rver'
import { S3Client } from '../../src/objects/s3/client.ts'
import { freePorts } from '../free-ports.ts'

export const BUCKET = 'muster-test'

export type S3TestService = {
  endpoint: string
  region: string
  access_key_id: string
  secret_access_key: string
  /** s3rver only compares the access key. */
  verifies_signatures: boolean
}

export type StoppableService = S3TestService & {
  /** From now on connections are refused. */
  stop: () => Promise<void>
  /** With what was stored before. */
  start: () => Promise<void>
}

export async function startS3rver(t: TestContext): Promise<StoppableService> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-s3rver-'))
  const [port] = (await freePorts(1)) as [number]
  let server: S3rver | null = null
  const start = async (): Promise<void> => {
    const configureBuckets = [{ name: BUCKET, configs: [] }]
    server = new S3rver({ address: '127.0.0.1', port, directory, silent: true, configureBuckets })
    await server.run()
  }
  const stop = async (): Promise<void> => {
    server?.httpServer.closeAllConnections()
    await server?.close()
    server = null
  }
  await start()
  t.after(async () => {
    await stop()
    await rm(directory, { recursive: true, force: true })
  })
  return {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    access_key_id: 'S3RVER',
    secret_access_key: 'S3RVER',
    verifies_signatures: false,
    stop,
    start,
  }
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
