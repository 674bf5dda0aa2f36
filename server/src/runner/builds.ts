// Builds on this machine: each is unpacked once, into `<data>/builds/<build_id>/`, and read-only from then on. An image is
// unpacked once more, into `<build_id>-<uid>-<gid>/`, for each other user of a version config. `find` never
// waits: it returns the folder, a failure, or 'unpacking', and `onChange` is called when the build is ready or has failed.
// An existing folder is complete: unpackArchive makes it appear in one step, durably, after its manifest
// (build-manifest.ts).
//
// Each start compares the folder with its manifest, quickly. Once in `check_ms` the whole folder is read. A folder that
// differs is moved aside, because lobbies may run on it, and the build is unpacked once more. If that copy differs too,
// starts fail.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { reportDamage } from '../database/damaged-objects.ts'
import { removePartialFolders } from '../objects/archive/archive.ts'
import type { ImageStart, ImageUser } from '../objects/container-image/config.ts'
import { ObjectDamaged } from '../objects/damage.ts'
import { createPace } from '../objects/pace.ts'
import {
  type BuildManifest,
  type Difference,
  fullDifference,
  quickDifference,
  quickPart,
  readManifest,
} from './build-manifest.ts'
import type { ExitReason } from './drivers/driver.ts'
import { FolderImages, IMAGE_SUFFIX, type ImageStore, readUnpackedImage } from './images/image-store.ts'
import { type BuildCopy, JOINED_ARCHIVE, unpackBuild, unpackPulled } from './unpack-build.ts'

/** Builds unpacked at once, and as many images pulled. Unpacking is bound by one disk. */
const UNPACK_CONCURRENCY_MAX = 2
/** A build that could not be unpacked is tried again after this time: the fault may have been the disk's. */
const FAILURE_KEPT_MS = 10_000
/** A build whose copy differs twice within this time fails for as long. */
const REPLACED_AGAIN_MS = 10 * 60_000
/** Failures, and times of replacement, that are remembered. Beyond it all of them are forgotten. */
const FAILURES_KEPT_MAX = 1_000
/** Unpacked builds without a lobby that are kept: the ones used last, and for the configured time at most. */
const UNUSED_KEPT_MAX = 20
/** An unused build is kept for this time after the last start that needed it. */
const UNUSED_KEPT_MS_MIN = 3_600_000
const REMOVED = '.removed-'
/** `.replaced-<build_id>-<random>`: a copy that differed from its manifest. It stays while a lobby runs on the build. */
const REPLACED = '.replaced-'
/** Suffix of the folder of the manifests, beside the folder of the builds. */
const MANIFESTS = '.manifests'
/** Suffix of the folder of the layers of images. */
const LAYERS = '.layers'
const BUILD_ID_LENGTH = 36
/** Copies of one image for users of version configs. Each stays while a lobby runs on the build. */
const USERS_MAX = 8

const DAMAGED_ARCHIVE =
  'The stored archive of the build is damaged: it is not what was uploaded. Upload the same archive again, which repairs it.'
const DAMAGED_COPY =
  "The build's unpacked files have changed on this machine's disk, twice. Its operator must check the disk."

type Failure = { failure: string; reason: ExitReason }
/** `image`: how the build starts; null for an archive. */
export type ReadyBuild = { folder: string; image: ImageStart | null }
export type BuildState = ReadyBuild | Failure | 'unpacking'

/**
 * `user`: another one than the image's own. `registry_image`: the name of an image that is pulled, with `build_id` made of
 * that name.
 */
export type BuildSource = { build_id: string; user?: ImageUser | null; registry_image?: string | null }

export type Builds = {
  /** Never waits. `failure`: a sentence for the developer. */
  find(source: BuildSource): BuildState
  /** Removes unused builds. A later start unpacks them again. */
  sweep(used_build_ids: ReadonlySet<string>): Promise<void>
  /** Begins to read every build that is due for a check, one after the other, at a bounded rate. Never waits. */
  check(): void
  /** Waits for builds that are being unpacked. */
  close(): Promise<void>
}

/**
 * Removes partial folders of a killed runner. `images`: null where images are unpacked into folders. `onChange` is called
 * when a build has become ready, or has failed.
 */
export async function openBuilds(
  ctx: Context,
  builds_folder: string,
  images: ImageStore | null,
  onChange: () => void,
): Promise<Builds> {
  await removePartialFolders(builds_folder)
  for (const name of await readdir(builds_folder)) {
    if (name.startsWith(JOINED_ARCHIVE) || name.startsWith(REMOVED))
      await rm(join(builds_folder, name), { recursive: true })
  }
  await mkdir(`${builds_folder}${MANIFESTS}`, { recursive: true, mode: 0o700 })
  const store = images ?? (await FolderImages.open(`${builds_folder}${LAYERS}`, ctx.now))
  return new UnpackedBuilds(ctx, builds_folder, store, onChange)
}

class UnpackedBuilds implements Builds {
  readonly #ctx: Context
  readonly #folder: string
  readonly #images: ImageStore
  readonly #onChange: () => void
  /** `manifest`: the part that a quick check compares. `asked_ms`: the last call of `find`. */
  readonly #ready = new Map<string, { manifest: BuildManifest; image: ImageStart | null; asked_ms: number }>()
  readonly #failures = new Map<string, Failure & { until_ms: number }>()
  readonly #preparing = new Map<string, { is_pull: boolean; done: Promise<void> }>()
  /** By build id: when its copy was last found to differ. */
  readonly #replaced = new Map<string, number>()
  readonly #closing = new AbortController()
  #checking: Promise<void> | null = null

  constructor(ctx: Context, folder: string, images: ImageStore, onChange: () => void) {
    this.#ctx = ctx
    this.#folder = folder
    this.#images = images
    this.#onChange = onChange
  }

  find({ build_id, user = null, registry_image = null }: BuildSource): BuildState {
    const is_for_all = user === null || this.#images.kind === 'engine'
    return this.#find(is_for_all ? build_id : `${build_id}-${user.uid}-${user.gid}`, registry_image)
  }

  #find(copy: string, registry_image: string | null): BuildState {
    const now_ms = this.#ctx.elapsed()
    const ready = this.#ready.get(copy)
    if (ready !== undefined && ready.image !== null && !this.#images.isThere(copy)) this.#ready.delete(copy)
    else if (ready !== undefined) {
      const difference = quickDifference(this.#folderOf(copy), ready.manifest)
      if (difference === null) {
        ready.asked_ms = now_ms
        return { folder: this.#folderOf(copy), image: ready.image }
      }
      this.#noteDifference(copy, difference)
    }
    const failed = this.#failures.get(copy)
    if (failed !== undefined && now_ms < failed.until_ms) return { failure: failed.failure, reason: failed.reason }
    this.#failures.delete(copy)
    // Further builds are requested again when one of these is done. A slow registry does not delay uploaded builds.
    const count = [...this.#preparing.values()].filter(({ is_pull }) => is_pull === (registry_image !== null)).length
    if (!this.#preparing.has(copy) && count < UNPACK_CONCURRENCY_MAX) {
      const is_pull = registry_image !== null
      this.#preparing.set(copy, { is_pull, done: this.#prepare(copy, registry_image) })
    }
    return 'unpacking'
  }

  async sweep(used_build_ids: ReadonlySet<string>): Promise<void> {
    const found: { copy: string; used_ms: number }[] = []
    const names = await readdir(this.#folder)
    for (const name of names.filter((one) => one.startsWith(REPLACED))) {
      const { build_id } = copyOf(name.slice(REPLACED.length))
      if (!used_build_ids.has(build_id)) await rm(join(this.#folder, name), { recursive: true })
    }
    for (const copy of names.filter((name) => !name.startsWith('.'))) {
      const folder = this.#folderOf(copy)
      const now = new Date(this.#ctx.now())
      if (used_build_ids.has(copyOf(copy).build_id)) await utimes(folder, now, now)
      else found.push({ copy, used_ms: (await stat(folder)).mtimeMs })
    }
    const { builds_ms } = this.#ctx.config.retention
    const oldest_ms = builds_ms === null ? Number.NEGATIVE_INFINITY : this.#ctx.now() - builds_ms
    const surplus = found
      .sort((a, b) => b.used_ms - a.used_ms)
      .filter(({ used_ms }, index) => index >= UNUSED_KEPT_MAX || used_ms < oldest_ms)
    for (const { copy } of surplus) {
      const asked_ms = this.#ready.get(copy)?.asked_ms ?? Number.NEGATIVE_INFINITY
      if (this.#ctx.elapsed() - asked_ms < UNUSED_KEPT_MS_MIN) continue
      this.#ready.delete(copy)
      const removed = join(this.#folder, `${REMOVED}${copy}`)
      await rename(this.#folderOf(copy), removed)
      await rm(removed, { recursive: true })
      await rm(this.#manifestPathOf(copy), { force: true })
      await rm(this.#imagePathOf(copy), { force: true })
    }
    // A build that is being unpacked may need layers that no list names yet.
    if (this.#preparing.size > 0) return
    const left = (await readdir(this.#folder)).filter((name) => !name.startsWith('.'))
    await this.#images.sweep({
      names: left,
      folderOf: (copy) => this.#folderOf(copy),
      imagePathOf: (copy) => this.#imagePathOf(copy),
    })
  }

  check(): void {
    const { check_ms } = this.#ctx.config
    if (check_ms === null || this.#checking !== null || this.#closing.signal.aborted) return
    this.#checking = this.#checkOld(check_ms)
      .catch((error: unknown) => {
        if (!this.#closing.signal.aborted) this.#ctx.log.warn({ err: error }, 'check of unpacked builds failed')
      })
      .finally(() => {
        this.#checking = null
      })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#checking
    await Promise.all([...this.#preparing.values()].map(({ done }) => done))
  }

  #folderOf(copy: string): string {
    return join(this.#folder, copy)
  }

  #manifestPathOf(copy: string): string {
    return join(`${this.#folder}${MANIFESTS}`, copy)
  }

  #imagePathOf(copy: string): string {
    return `${this.#manifestPathOf(copy)}${IMAGE_SUFFIX}`
  }

  /** Makes the build ready, from its folder or from the archive, or records the failure. */
  async #prepare(copy: string, registry_image: string | null): Promise<void> {
    try {
      const manifest = (await this.#existing(copy)) ?? (await this.#unpacked(copy, registry_image))
      const image = await readUnpackedImage(this.#imagePathOf(copy))
      const start = image?.start ?? null
      this.#ready.set(copy, { manifest: quickPart(manifest), image: start, asked_ms: this.#ctx.elapsed() })
    } catch (error) {
      if (error instanceof ObjectDamaged) await reportDamage(this.#ctx, error)
      this.#ctx.log.warn({ err: error, ...copyOf(copy) }, 'build could not be unpacked')
      this.#fail(copy, failureOf(error), FAILURE_KEPT_MS)
    } finally {
      this.#preparing.delete(copy)
      this.#onChange()
    }
  }

  /** The manifest of an existing folder that fits it. A folder that does not fit is moved aside. */
  async #existing(copy: string): Promise<BuildManifest | null> {
    const folder = this.#folderOf(copy)
    if (!existsSync(folder)) return null
    const manifest = await readManifest(this.#manifestPathOf(copy))
    const difference = await this.#differenceOf(copy, manifest)
    if (difference === null) return manifest
    this.#ctx.log.warn({ ...copyOf(copy), difference }, 'unpacked build differs from its manifest; unpacking it again')
    await rename(folder, join(this.#folder, `${REPLACED}${copy}-${randomBytes(4).toString('hex')}`))
    return null
  }

  async #differenceOf(copy: string, manifest: BuildManifest | null): Promise<Difference> {
    if (manifest === null) return 'it has no manifest'
    const image = await readUnpackedImage(this.#imagePathOf(copy))
    if (image !== null && (image.layers === null) !== (this.#images.kind === 'engine')) return 'another driver made it'
    if (image !== null && !this.#images.isThere(copy)) return 'the container engine has lost its image'
    return quickDifference(this.#folderOf(copy), quickPart(manifest))
  }

  async #unpacked(copy: string, registry_image: string | null): Promise<BuildManifest> {
    const started_ms = this.#ctx.elapsed()
    await this.#requireFewUsers(copyOf(copy))
    const manifest_path = this.#manifestPathOf(copy)
    const place = { target: this.#folderOf(copy), manifest_path, image_path: this.#imagePathOf(copy) }
    if (registry_image === null) await unpackBuild(this.#ctx, copyOf(copy), place, this.#images)
    else await unpackPulled(this.#ctx, copyOf(copy), registry_image, place, this.#images, this.#closing.signal)
    this.#ctx.log.info({ ...copyOf(copy), unpack_ms: this.#ctx.elapsed() - started_ms }, 'build unpacked')
    const manifest = await readManifest(manifest_path)
    if (manifest === null) throw new Error('The manifest of an unpacked build cannot be read.')
    return manifest
  }

  async #requireFewUsers({ build_id, user }: BuildCopy): Promise<void> {
    if (user === null) return
    const copies = (await readdir(this.#folder)).filter((name) => name.startsWith(`${build_id}-`))
    if (copies.length < USERS_MAX) return
    const message = `The image is unpacked for ${USERS_MAX} other users on this machine. Use one of them, or leave user out.`
    throw new ApiError('ARCHIVE_INVALID', { build_id }, { message })
  }

  /** The next start unpacks the build again, unless that was done a short time ago. */
  #noteDifference(copy: string, difference: string): void {
    const now_ms = this.#ctx.elapsed()
    this.#ready.delete(copy)
    this.#ctx.metrics.damage_found.inc({ reason: 'unpacked_build' })
    this.#ctx.log.error(
      { ...copyOf(copy), difference },
      'unpacked build changed on the disk; its copy is no longer used',
    )
    const before_ms = this.#replaced.get(copy)
    if (this.#replaced.size >= FAILURES_KEPT_MAX) this.#replaced.clear()
    this.#replaced.set(copy, now_ms)
    if (before_ms !== undefined && now_ms - before_ms < REPLACED_AGAIN_MS) {
      this.#fail(copy, { failure: DAMAGED_COPY, reason: 'build_damaged' }, REPLACED_AGAIN_MS)
    }
  }

  #fail(copy: string, failure: Failure, kept_ms: number): void {
    if (this.#failures.size >= FAILURES_KEPT_MAX) this.#failures.clear()
    this.#failures.set(copy, { ...failure, until_ms: this.#ctx.elapsed() + kept_ms })
  }

  /** The time of change of the manifest is the time of the last full check. */
  async #checkOld(check_ms: number): Promise<void> {
    const pace = createPace(this.#closing.signal)
    for (const copy of (await readdir(this.#folder)).filter((name) => !name.startsWith('.'))) {
      const path = this.#manifestPathOf(copy)
      // The next start moves a folder without a manifest aside.
      if (!existsSync(path) || this.#ctx.now() - (await stat(path)).mtimeMs < check_ms) continue
      const manifest = await readManifest(path)
      if (manifest === null) continue
      const difference = await fullDifference(this.#folderOf(copy), manifest, pace)
      const now = new Date(this.#ctx.now())
      if (difference === null) await utimes(path, now, now)
      else {
        // Without its manifest the next start moves the folder aside, even if a quick check finds no difference. One that has
        // read the manifest before is waited for.
        await rm(path, { force: true })
        await this.#preparing.get(copy)?.done
        this.#noteDifference(copy, difference)
      }
    }
  }
}

/** `name`: of a folder. */
function copyOf(name: string): BuildCopy {
  const [uid, gid] = name
    .slice(BUILD_ID_LENGTH + 1)
    .split('-')
    .map(Number)
  return { build_id: name.slice(0, BUILD_ID_LENGTH), user: gid === undefined ? null : { uid: uid!, gid } }
}

function failureOf(error: unknown): Failure {
  if (error instanceof ObjectDamaged) return { failure: DAMAGED_ARCHIVE, reason: 'build_damaged' }
  return {
    failure: error instanceof ApiError ? error.message : 'The build cannot be unpacked now.',
    reason: 'no_build',
  }
}
