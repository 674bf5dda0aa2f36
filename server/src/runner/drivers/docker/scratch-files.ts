// Files in the writable folder of a lobby before its program starts. The folder is a volume in memory, with a size limit.
// Such a volume exists only while a container uses it, so its files are written through a second container, which is never
// started: its upload stays open until the lobby's container has the volume too.
import { dirname, posix } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { pack } from 'tar-stream'
import { SCRATCH_MOUNT } from '../bubblewrap.ts'
import type { ScratchFile, Tier } from '../driver.ts'
import { containerName, fileWriterLabels } from './container.ts'
import { type EngineClient, ignoreDone } from './engine.ts'

const STAT_HEADER = 'x-docker-container-path-stat'
/** How long the engine may take to unpack the files. */
const UNPACK_MS_MAX = 30_000
const UNPACK_POLL_MS = 5
/** The time of change of every file. It is set last, so it shows that a file is complete. */
const CHANGE_TIME = new Date('2001-01-01T00:00:00Z')

export type ScratchPlan = {
  lobby_id: string
  image_id: string
  labels: Readonly<Record<string, string>>
  uid: number | null
  files: readonly ScratchFile[]
}

export type FilledScratch = { release(): Promise<void> }

/** The mount of the volume. The first container that has it makes the volume. */
export function scratchMount({ lobby_id, labels, uid }: Omit<ScratchPlan, 'files' | 'image_id'>, tier: Tier): object {
  const owner = uid === null ? '' : `,uid=${uid},gid=${uid}`
  const o = `size=${tier.tmp_bytes},mode=${modeOf(uid).toString(8)},nosuid,nodev${owner}`
  const DriverConfig = { Name: 'local', Options: { type: 'tmpfs', device: 'tmpfs', o } }
  const options = { NoCopy: true, Labels: labels, DriverConfig }
  return { Type: 'volume', Source: containerName(lobby_id), Target: SCRATCH_MOUNT, VolumeOptions: options }
}

/**
 * Writes the files into the volume of a lobby's container that was created and not started. `release` is called once that
 * container runs, or was given up.
 */
export async function fillScratch(engine: EngineClient, plan: ScratchPlan): Promise<FilledScratch> {
  const { lobby_id, image_id, labels, uid } = plan
  const writer = `${containerName(lobby_id)}-files`
  const upload = pack()
  // Until the request is sent, a failure has no other listener.
  upload.on('error', () => undefined)
  let sending: Promise<unknown> = Promise.resolve()
  async function release(): Promise<void> {
    upload.finalize()
    await sending.catch(() => undefined)
    await engine.call('DELETE', `/containers/${writer}`, { query: { force: '1' } }).catch(ignoreDone)
  }
  try {
    const Mounts = [{ Type: 'volume', Source: containerName(lobby_id), Target: SCRATCH_MOUNT }]
    const body = {
      Image: image_id,
      Entrypoint: ['never'],
      Labels: fileWriterLabels(labels),
      HostConfig: { NetworkMode: 'none', Mounts },
    }
    await engine.call('POST', '/containers/create', { query: { name: writer }, body })
    sending = engine.send(
      'PUT',
      `/containers/${writer}/archive`,
      { path: SCRATCH_MOUNT },
      upload.pipe(new PassThrough()),
    )
    const failed = sending.then(() => {
      throw new Error('The container engine ended the upload of files early.')
    })
    failed.catch(() => undefined)
    writeEntries(upload, uid, plan.files)
    await Promise.race([failed, unpacked(engine, containerName(lobby_id), plan.files.at(-1)!.path)])
    return { release }
  } catch (error) {
    await release().catch(() => undefined)
    throw error
  }
}

/** Without a user of its own the program has that of the image, which is not known here. */
const modeOf = (uid: number | null): number => (uid === null ? 0o777 : 0o700)

function writeEntries(upload: ReturnType<typeof pack>, uid: number | null, files: readonly ScratchFile[]): void {
  // The plain header has too few digits for these numbers.
  const owner = uid === null ? {} : { pax: { uid: String(uid), gid: String(uid) } }
  const common = { ...owner, mtime: CHANGE_TIME }
  const folders = new Set(files.flatMap(({ path }) => parentsOf(path)))
  for (const name of [...folders].sort()) {
    upload.entry({ ...common, name: `${name}/`, type: 'directory', mode: modeOf(uid) })
  }
  for (const { path, content } of files) upload.entry({ ...common, name: path, mode: modeOf(uid) & 0o666 }, content)
}

function parentsOf(path: string): string[] {
  const parents: string[] = []
  for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) parents.push(parent)
  return parents
}

/** Resolves when the last file is complete. */
async function unpacked(engine: EngineClient, container: string, last_path: string): Promise<void> {
  const path = posix.join(SCRATCH_MOUNT, last_path)
  for (let waited_ms = 0; waited_ms < UNPACK_MS_MAX; waited_ms += UNPACK_POLL_MS) {
    const header = await engine.headerOf(`/containers/${container}/archive`, { path }, STAT_HEADER)
    const stat = header === null ? null : (JSON.parse(Buffer.from(header, 'base64').toString()) as { mtime: string })
    if (stat !== null && Date.parse(stat.mtime) === CHANGE_TIME.getTime()) return
    await sleep(UNPACK_POLL_MS)
  }
  throw new Error('The container engine did not unpack the files of a lobby in time.')
}
