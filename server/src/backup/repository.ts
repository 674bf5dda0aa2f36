// A repository: many backups in one location, a folder or a bucket, which share their objects. An object never changes, so each
// backup copies only the objects that no earlier one has.
//
//   backups/<name>/    the files of one backup, without its objects; manifest.json is written last
//   objects/           the objects of all backups, by their keys
//
// With a key, every file is encrypted (encryption.ts), and files below `backups/` have names that end with `.age`. A repository
// is encrypted or it is not: the two never mix, because they share no object.
// A backup without a manifest is not finished. `<name>` is the time of the backup, so names are in the order of time.
import { randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/config.ts'
import { readS3Location } from '../config/objects.ts'
import { StartError } from '../config/start-error.ts'
import type { Recorded } from '../objects/damage.ts'
import { openFilesystemObjects } from '../objects/filesystem.ts'
import type { Objects } from '../objects/objects.ts'
import { S3Client, type S3Options } from '../objects/s3/client.ts'
import { listFiles, readFile, removeFile, writeFile } from '../objects/s3/files.ts'
import { openS3Objects } from '../objects/s3/s3-objects.ts'
import { syncFolder } from '../objects/sync-folder.ts'
import { type Cipher, CipherDamaged, openCipher } from './encryption.ts'
import { MANIFEST_FILE, type Manifest, objectFile } from './manifest.ts'

const NAME = /^\d{4}-\d{2}-\d{2}T\d{6}Z$/
/** What names of encrypted files end with below `backups/`. Objects keep their keys. */
const ENCRYPTED = '.age'

/** The objects of a repository, by their keys, as they are in the platform. */
export type BackupObjects = {
  /** The hash of the object that the repository has already; null: it must be put. */
  hashOf: (file: Recorded) => Promise<string | null>
  put: (object_key: string, body: AsyncIterable<Uint8Array>, content_length: number) => Promise<void>
  /** Null: there is none. */
  lengthOf: (object_key: string) => Promise<number | null>
  /** Rejects with ObjectNotFound. */
  read: (object_key: string) => Promise<Readable>
  delete: (object_key: string) => Promise<void>
}

/** A backup whose files are in a folder, and where its objects are. */
export type OpenedBackup = {
  /** As the operator named it. */
  label: string
  /** All files but objects. */
  folder: string
  /** Null: the folder has them. */
  objects: BackupObjects | null
  /** Whether the bytes of an object are read. Absent: all are. */
  reads?: (object_key: string) => boolean
}

export type Repository = {
  /** As the operator named it. */
  location: string
  is_encrypted: boolean
  objects: BackupObjects
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

/** The same without encryption: what is stored. */
type Store = Omit<Repository, 'objects' | 'is_encrypted'> & { objects: Objects }

export type RepositoryOptions = S3Options & {
  s3: Config['s3']
  /** For files on their way. */
  work_folder: string
  /** Null: nothing is encrypted. */
  key: string | null
}

/** Throws a StartError for a bucket without credentials in the settings, and for a text that is no key. */
export async function openRepository(
  location: string,
  { s3, work_folder, key, ...options }: RepositoryOptions,
): Promise<Repository> {
  const cipher = key === null ? null : await openCipher(key)
  const store = location.startsWith('s3://')
    ? openBucket(location, { s3, work_folder, ...options })
    : openFolder(resolve(location))
  return cipher === null ? plainRepository(store) : encryptedRepository(store, cipher, work_folder)
}

function plainRepository(store: Store): Repository {
  return {
    ...store,
    is_encrypted: false,
    objects: plainObjects(store.objects),
    async *list() {
      for await (const path of store.list()) {
        if (path.endsWith(MANIFEST_FILE + ENCRYPTED)) {
          const message = `The backups of ${store.location} are encrypted. Set MUSTER_BACKUP_KEY to the key that they were made with.`
          throw new StartError(message)
        }
        yield path
      }
    },
  }
}

function plainObjects(objects: Objects): BackupObjects {
  return {
    async hashOf({ object_key, sha256, content_length }) {
      const there = await objects.stat(object_key)
      return there !== null && there.sha256 === sha256 && there.content_length === content_length ? sha256 : null
    },
    put: async (object_key, body, content_length) => void (await objects.put(object_key, body, content_length)),
    lengthOf: async (object_key) => (await objects.stat(object_key))?.content_length ?? null,
    read: (object_key) => objects.read(object_key),
    delete: (object_key) => objects.delete(object_key),
  }
}

function encryptedRepository(store: Store, cipher: Cipher, work_folder: string): Repository {
  const { objects } = store
  const named = (path: string): string => path + ENCRYPTED
  return {
    ...store,
    is_encrypted: true,
    objects: {
      // An object never changes, and its length follows from that of the file. Its bytes prove themselves when they are read.
      async hashOf({ object_key, sha256, content_length }) {
        const there = await objects.stat(object_key)
        return there?.content_length === cipher.lengthOf(content_length) ? sha256 : null
      },
      async put(object_key, body, content_length) {
        await objects.put(object_key, await cipher.encrypt(body), cipher.lengthOf(content_length))
      },
      async lengthOf(object_key) {
        const there = await objects.stat(object_key)
        return there === null ? null : cipher.plainLengthOf(there.content_length)
      },
      read: async (object_key) => cipher.decrypt(await objects.read(object_key)),
      delete: (object_key) => objects.delete(object_key),
    },
    async *list() {
      for await (const path of store.list()) {
        if (path.endsWith(`/${MANIFEST_FILE}`)) {
          const message = `${store.location} has backups that are not encrypted. Name another repository, or leave MUSTER_BACKUP_KEY out.`
          throw new StartError(message)
        }
        if (path.endsWith(ENCRYPTED)) yield path.slice(0, -ENCRYPTED.length)
      }
    },
    async write(path, local_path) {
      const encrypted = join(work_folder, `encrypted-${randomBytes(8).toString('hex')}`)
      try {
        await pipeline(
          await cipher.encrypt(createReadStream(local_path)),
          createWriteStream(encrypted, { mode: 0o600, flags: 'wx' }),
        )
        await store.write(named(path), encrypted)
      } finally {
        await rm(encrypted, { force: true })
      }
    },
    async read(path) {
      const bytes = await store.read(named(path))
      return bytes === null ? null : cipher.decrypt(bytes)
    },
    remove: (path) => store.remove(named(path)),
  }
}

function openBucket(location: string, { s3, work_folder, ...options }: Omit<RepositoryOptions, 'key'>): Store {
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

function openFolder(root: string): Store {
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

/** Fetches a backup, without its objects, into `folder`. `name`: null for the latest. Throws a StartError when it is not there. */
export async function openBackup(repository: Repository, name: string | null, folder: string): Promise<OpenedBackup> {
  const found = await fetchBackup(repository, name, folder)
  return { label: backupLabel(repository, found), folder, objects: repository.objects }
}

/** The bytes of an object, which are not checked yet. */
export async function readObject({ folder, objects }: OpenedBackup, object_key: string): Promise<Readable> {
  return objects === null ? createReadStream(join(folder, objectFile(object_key))) : objects.read(object_key)
}

/** As records and people name a backup. */
export function backupLabel({ location }: Pick<Repository, 'location'>, name: string): string {
  return `${location}/backups/${name}`
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

/**
 * Throws a StartError where a new backup would share objects with backups that it cannot read, or the rule of one platform would
 * remove the backups of another: the latest was encrypted with another key, or is of another platform.
 */
export async function requireUsable(repository: Repository, platform_id: string | null): Promise<void> {
  const latest = (await listBackups(repository)).findLast(({ is_finished }) => is_finished)
  if (latest === undefined) return
  const { location } = repository
  const manifest = await readLatest(repository, latest.name)
  if (manifest.platform_id === undefined || platform_id === null || manifest.platform_id === platform_id) return
  throw new StartError(
    `${location} has backups of another platform. Restore one of them ("muster restore --from ${location}", or the hub), or name another repository.`,
  )
}

async function readLatest(repository: Repository, name: string): Promise<Partial<Manifest>> {
  const { location } = repository
  try {
    const bytes = await repository.read(`${name}/${MANIFEST_FILE}`)
    return bytes === null ? {} : ((await json(bytes)) as Partial<Manifest>)
  } catch (error) {
    if (error instanceof CipherDamaged || error instanceof SyntaxError) return {}
    if (!(error instanceof StartError)) throw error
    const message = `The backups of ${location} were made with another key than MUSTER_BACKUP_KEY. Use that key, or another repository.`
    throw new StartError(message, { cause: error })
  }
}

/** Fetches the files of a backup, without its objects. `name`: null for the latest. Throws a StartError when it is not there. */
async function fetchBackup(repository: Repository, name: string | null, folder: string): Promise<string> {
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
    await pipeline(bytes, createWriteStream(target, { mode: 0o600, flags: 'wx' })).catch((error: unknown) => {
      if (!(error instanceof CipherDamaged)) throw error
      throw new StartError(`${path} of the backup ${backup.name} is damaged.`, { cause: error })
    })
  }
  return backup.name
}
