// PostgreSQL's files for a platform that a test starts with a database of its own. A run makes them once, with all tables
// (run/database-server.ts). To make them takes a processor 2 s, and to copy them 0.1 s. Without a run the platform makes its own.
// Tests of a first start do not use this.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The environment variable with the folder of the files. */
export const CLUSTER_VARIABLE = 'TEST_CLUSTER'

const run = promisify(execFile)

/** Copies the files into a data folder on which no platform was started. */
export async function placeCluster(data_dir: string): Promise<void> {
  const made = process.env[CLUSTER_VARIABLE]
  if (made === undefined) return
  await mkdir(data_dir, { recursive: true })
  await run('cp', ['-a', join(made, 'postgres'), join(made, 'keys'), data_dir])
}
