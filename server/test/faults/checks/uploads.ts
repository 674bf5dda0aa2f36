// Uploads, versions and deploys. Law L7: a complete upload has its recorded hashes, which are those of the bytes on the
// disk and of the bytes that were sent. An acknowledged deploy is in the history of its namespace.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientBase } from 'pg'
import { acknowledged, type History } from '../history.ts'
import type { Findings } from './findings.ts'
import { possibleValues } from './last-value.ts'

type FileRow = { upload_id: string; path: string; object_key: string; sha256: string | null; is_complete: boolean }
type DeployRow = { namespace_id: string; version_id: string; is_current: boolean }

/** `folder`: the platform's data folder. */
export async function checkUploads(
  db: ClientBase,
  folder: string,
  history: History,
  findings: Findings,
): Promise<void> {
  const { rows } = await db.query<FileRow>(
    `select f.upload_id, f.path, f.object_key, f.sha256, u.complete_ts is not null as is_complete
      from upload_files f join uploads u on u.upload_id = f.upload_id`,
  )
  const files = new Map(rows.map((row) => [`${row.upload_id} ${row.path}`, row]))
  for (const { upload_id, path, sha256 } of acknowledged(history.of('object'))) {
    const row = files.get(`${upload_id} ${path}`)
    const stored = row === undefined ? null : await hashOf(objectPath(folder, row.object_key))
    findings.require(
      stored === sha256,
      `file ${path} of upload ${upload_id} was acknowledged, and has the hash ${stored}`,
    )
  }
  for (const { upload_id, files: sent, outcome } of history.of('upload')) {
    for (const { path, sha256 } of sent) {
      const row = files.get(`${upload_id} ${path}`)
      if (outcome.status === 'acknowledged') {
        findings.require(
          row?.is_complete === true,
          `the completion of upload ${upload_id} was acknowledged and is lost`,
        )
      }
      if (outcome.status === 'refused') {
        findings.require(
          row?.is_complete !== true,
          `upload ${upload_id} was refused (${outcome.code}), and is complete`,
        )
      }
      if (row?.is_complete !== true) continue
      const stored = await hashOf(objectPath(folder, row.object_key))
      findings.require(
        row.sha256 === sha256 && stored === sha256,
        `file ${path} of the complete upload ${upload_id} was sent as ${sha256}, is recorded as ${row.sha256} and stored as ${stored}`,
      )
    }
  }
}

export async function checkDeploys(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const versions = await db.query<{ version_id: string }>('select version_id from versions')
  const known = new Set(versions.rows.map(({ version_id }) => version_id))
  for (const { result } of acknowledged(history.of('version'))) {
    findings.require(known.has(result.version_id), `the acknowledged version ${result.version_id} is lost`)
  }
  const { rows } = await db.query<DeployRow>(
    `select d.namespace_id, d.version_id, n.version_id = d.version_id as is_current
      from namespace_versions d join namespaces n on n.namespace_id = d.namespace_id`,
  )
  const deployed = new Set(rows.map(({ namespace_id, version_id }) => `${namespace_id} ${version_id}`))
  const current = new Map(rows.filter(({ is_current }) => is_current).map((row) => [row.namespace_id, row.version_id]))
  for (const [namespace_id, deploys] of Map.groupBy(history.of('deploy'), ({ namespace_id }) => namespace_id)) {
    for (const { version_id } of acknowledged(deploys)) {
      findings.require(
        deployed.has(`${namespace_id} ${version_id}`),
        `the acknowledged deploy of ${version_id} is lost`,
      )
    }
    const possible = possibleValues(deploys, ({ version_id }) => version_id, null)
    // Before the first acknowledged deploy the namespace is on the version that it began with.
    if (possible.has(null)) continue
    const version_id = current.get(namespace_id) ?? null
    findings.require(
      possible.has(version_id),
      `namespace ${namespace_id} is on ${version_id}, not on one of ${[...possible]}`,
    )
  }
}

function objectPath(folder: string, object_key: string): string {
  return join(folder, 'objects', object_key.slice(0, 2), object_key)
}

/** Null: there is no such file. */
async function hashOf(path: string): Promise<string | null> {
  try {
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
