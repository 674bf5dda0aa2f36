// A repository: many backups in one location, a folder or a bucket, which share their objects. An object never changes, so each
// backup copies only the objects that no earlier one has.
//
//   backups/<name>/    the files of one backup, without its objects; manifest.json is written last
//   objects/           the objects of all backups, by their keys
//
// A backup without a manifest is not finished. `<name>` is the time of the backup, so names are in the order of time.
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/config.ts'
import { readS3Location } from '../config/objects.ts'
import { StartError } from '../config/start-error.ts'
import { openFilesystemObjects } from '../objects/filesystem.ts'
import type { Objects } from '../objects/objects.ts'
import { S3Client, type S3Options } from '../objects/s3/client.ts'
import { listFiles, readFile, removeFile, writeFile } from '../objects/s3/files.ts'
import { openS3Objects } from '../objects/s3/s3-objects.ts'
import { syncFolder } from '../objects/sync-folder.ts'
import { MANIFEST_FILE } from './manifest.ts'

const NAME = /^\d{4}-\d{2}-\d{2}T\d{6}Z$/

export type Repository = {
  /** As the operator named it. */
  location: string
  objects: Objects
  /** The keys of all objects. */
  objectKeys: () => AsyncIterable<string>
  /** Paths below `backups/`. */
  list: () => AsyncIterable<string>
  write: (path: string, local_path: string) => Promise<void>
  /** Null: there is no such file. */
  read: (path: string) => Promise<Readable | null>
  remove: (path: string) => Promise<void>
  close: () => void
}

/** `work_folder`: for files on their way. Throws a StartError for a bucket without credentials in the settings. */
export function openRepository(
  location: string,
  { s3, work_folder, ...options }: S3Options & { s3: Config['s3']; work_folder: string },
): Repository {
  if (!location.startsWith('s3://')) return openFolder(resolve(location))
  const bucket = readS3Location(location)
  if (bucket === null) throw new StartError(`A bucket is s3://BUCKET or s3://BUCKET/PREFIX, not ${location}.`)
  if (s3 === null) {
    throw new StartError(`${location} needs MUSTER_S3_ACCESS_KEY_ID and MUSTER_S3_SECRET_ACCESS_KEY; set both.`)
  }
  const client = new S3Client({ ...s3, ...bucket }, options)
  return {
    location,
    objects: openS3Objects(client, { incoming_folder: join(work_folder, 'transfer'), upload_endpoint: null }),
    objectKeys: () => withoutFolder(listFiles(client, 'objects/'), 'objects/'),
    list: () => withoutFolder(listFiles(client, 'backups/'), 'backups/'),
    write: (path, local_path) => writeFile(client, `backups/${path}`, local_path),
    read: (path) => readFile(client, `backups/${path}`),
    remove: (path) => removeFile(client, `backups/${path}`),
    close: () => client.close(),
  }
}

function openFolder(root: string): Repository {
  const backups = join(root, 'backups')
  return {
    location: root,
    objects: openFilesystemObjects(join(root, 'objects')),
    async *objectKeys() {
      for await (const path of pathsBelow(join(root, 'objects'))) {
        const [shard = '', key = ''] = path.split('/')
        if (key.length === 32 && key.startsWith(shard)) yield key
      }
    },
    list: () => pathsBelow(backups),
    async write(path, local_path) {
      const target = join(backups, path)
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      await copyFile(local_path, `${target}.new`)
      await rename(`${target}.new`, target)
      await syncFolder(dirname(target))
    },
    read: async (path) => (existsSync(join(backups, path)) ? createReadStream(join(backups, path)) : null),
    remove: (path) => rm(join(backups, path), { force: true }),
    close: () => undefined,
  }
}

async function* withoutFolder(paths: AsyncIterable<string>, folder: string): AsyncGenerator<string> {
  for await (const path of paths) yield path.slice(folder.length)
}

async function* pathsBelow(folder: string): AsyncGenerator<string> {
  if (!existsSync(folder)) return
  const items = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = items.filter((item) => item.isFile())
  yield* files.map((item) => relative(folder, join(item.parentPath, item.name)).split(sep).join('/')).sort()
}

/** `2026-11-24T095000Z`. */
export function backupName(create_ts: string): string {
  return `${create_ts.slice(0, 19).replaceAll(':', '')}Z`
}

/** `is_finished`: it has a manifest. In the order of time. */
export type ListedBackup = { name: string; is_finished: boolean; paths: string[] }

export async function listBackups(repository: Repository): Promise<ListedBackup[]> {
  const backups = new Map<string, ListedBackup>()
  for await (const path of repository.list()) {
    const slash = path.indexOf('/')
    const name = path.slice(0, slash)
    if (!NAME.test(name)) continue
    const backup = backups.get(name) ?? { name, is_finished: false, paths: [] }
    backup.paths.push(path.slice(slash + 1))
    if (path === `${name}/${MANIFEST_FILE}`) backup.is_finished = true
    backups.set(name, backup)
  }
  return [...backups.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** Fetches the files of a backup, without its objects. `name`: null for the latest. Throws a StartError when it is not there. */
export async function fetchBackup(repository: Repository, name: string | null, folder: string): Promise<string> {
  const finished = (await listBackups(repository)).filter((backup) => backup.is_finished)
  const backup = name === null ? finished.at(-1) : finished.find((one) => one.name === name)
  if (backup === undefined) {
    const which = name === null ? 'has no finished backup' : `has no finished backup ${name}`
    throw new StartError(`${repository.location} ${which}. "muster backups ${repository.location}" lists what it has.`)
  }
  for (const path of backup.paths) {
    const target = join(folder, path)
    // A path comes from the location of the backup, which somebody else may write to.
    if (relative(folder, target).startsWith('..')) throw new StartError(`${repository.location} has a file ${path}.`)
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    const bytes = await repository.read(`${backup.name}/${path}`)
    if (bytes === null) throw new StartError(`${path} of the backup ${backup.name} was removed meanwhile.`)
    await pipeline(bytes, createWriteStream(target, { mode: 0o600, flags: 'wx' }))
  }
  return backup.name
}
