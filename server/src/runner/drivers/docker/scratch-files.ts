// Files in the writable folder of a lobby before its program starts. The folder is a volume in memory, with a size limit.
// Such a volume exists only while a container uses it, so its files are written through a second container, which is never
// started: its upload stays open until the lobby's container has the volume too.
import { dirname, posix } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { pack } from 'tar-stream'
import type { ScratchFile, Tier } from '../driver.ts'
import { SCRATCH_MOUNT } from '../driver.ts'
import { containerName, type FolderOwner, neverRunsLabels } from './container.ts'
import { type EngineClient, ignoreDone } from './engine.ts'

const FOLDER = SCRATCH_MOUNT.slice(1)
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
  owner: FolderOwner
  files: readonly ScratchFile[]
}

export type FilledScratch = { release(): Promise<void> }

/** Makes the volume, and returns its mount. */
export async function makeScratch(
  engine: EngineClient,
  { lobby_id, labels, owner }: Omit<ScratchPlan, 'files' | 'image_id'>,
  tier: Tier,
): Promise<object> {
  const ids = owner === null ? '' : `,uid=${owner.uid},gid=${owner.gid}`
  const o = `size=${tier.tmp_bytes},mode=${modeOf(owner).toString(8)},nosuid,nodev${ids}`
  const Name = containerName(lobby_id)
  const DriverOpts = { type: 'tmpfs', device: 'tmpfs', o }
  await engine.call('POST', '/volumes/create', { body: { Name, Driver: 'local', DriverOpts, Labels: labels } })
  return { Type: 'volume', Source: Name, Target: SCRATCH_MOUNT, VolumeOptions: { NoCopy: true } }
}

/**
 * Writes the files into the volume of a lobby. `container`: one with the volume that was created and not started. `release`
 * is called once the lobby's container runs, or was given up.
 */
export async function fillScratch(
  engine: EngineClient,
  plan: ScratchPlan,
  container = containerName(plan.lobby_id),
): Promise<FilledScratch> {
  const { lobby_id, image_id, labels, owner } = plan
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
    const body = besideBody({ lobby_id, image_id, labels })
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
    writeEntries(upload, owner, plan.files)
    await Promise.race([failed, unpacked(engine, container, plan.files.at(-1)!.path)])
    return { release }
  } catch (error) {
    await release().catch(() => undefined)
    throw error
  }
}

/** The body of a container that has the volume of a lobby and never runs. */
export function besideBody({
  lobby_id,
  image_id,
  labels,
}: Pick<ScratchPlan, 'lobby_id' | 'image_id' | 'labels'>): object {
  const Mounts = [{ Type: 'volume', Source: containerName(lobby_id), Target: SCRATCH_MOUNT }]
  return {
    Image: image_id,
    Entrypoint: ['never'],
    Labels: neverRunsLabels(labels),
    HostConfig: { NetworkMode: 'none', Mounts },
  }
}

/**
 * The same for Podman, which mounts no volume before the start. It copies what the root of a container has at a folder in
 * memory into that folder when the container starts, so the files are written into the root.
 */
export async function fillRoot(engine: EngineClient, { lobby_id, owner, files }: ScratchPlan): Promise<void> {
  const upload = pack()
  upload.entry({ name: `${FOLDER}/`, type: 'directory', mode: 0o1777 })
  writeEntries(upload, owner, files, `${FOLDER}/`)
  upload.finalize()
  const path = `/containers/${containerName(lobby_id)}/archive`
  await engine.send('PUT', path, { path: '/' }, upload.pipe(new PassThrough()))
}

/** Without a user of its own the program has that of the image, which is not known here. */
const modeOf = (owner: FolderOwner): number => (owner === null ? 0o777 : 0o700)

function writeEntries(
  upload: ReturnType<typeof pack>,
  owner: FolderOwner,
  files: readonly ScratchFile[],
  parent = '',
): void {
  // The plain header has too few digits for these numbers.
  const ids = owner === null ? {} : { pax: { uid: String(owner.uid), gid: String(owner.gid) } }
  const common = { ...ids, mtime: CHANGE_TIME }
  const folders = new Set(files.flatMap(({ path }) => parentsOf(path)))
  for (const name of [...folders].sort()) {
    upload.entry({ ...common, name: `${parent}${name}/`, type: 'directory', mode: modeOf(owner) })
  }
  for (const { path, content } of files) {
    upload.entry({ ...common, name: `${parent}${path}`, mode: modeOf(owner) & 0o666 }, content)
  }
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
