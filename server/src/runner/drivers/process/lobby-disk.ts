// The disk of a lobby: a file system of a fixed size, with the lobby's writable folder and, for a container image, the
// changes of its root. It lies in a sparse file, which loses its name once it is mounted in a mount namespace of the
// lobby's monitor. So the disk is gone with the last process of the lobby, also after a kill -9 of the runner: there is
// nothing to unmount or to remove. Where no file can be mounted, the changes of a container image's root are in memory.
//
// A monitor makes and mounts its disk before it has a lobby (spare-monitors.ts). This process makes the folders on it, by
// the root folder of the monitor, so that no program runs for them while a player waits.
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { quoteForShell } from '@musterhost/contract'
import { shownMode } from '../../images/unpack-image.ts'
import type { Tier } from '../driver.ts'

/** Bytes in memory for each file and folder. On a disk, mkfs chooses their number. */
const BYTES_PER_INODE = 4_096
const INODES_MIN = 1_024

/**
 * $1: the file of the disk, or the options of a file system in memory. $2: an empty folder. A disk has no journal, because it
 * ends with its lobby.
 */
const MAKE = {
  file: 'mkfs.ext4 -q -F -m 0 -O ^has_journal,^resize_inode -E nodiscard "$1" && mount -t ext4 -o loop,nosuid,nodev,noatime,noinit_itable,discard "$1" "$2"',
  memory: 'mount -t tmpfs -o "$1" lobby-disk "$2"',
} as const
/** The folders of a container image's root. The changes of the root are in `upper`. */
const IMAGE_FOLDERS = ['lower', 'upper', 'work', 'merged'] as const
const OVERLAY = 'mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work lobby-root merged'

/** `file`: on the machine's disk, of the size of the tier. `memory`: of the size of the other writable folders. */
export type DiskKind = keyof typeof MAKE

/** A disk that a monitor makes. `script`: shell commands that fail as a whole, with two `args`. */
export type NewDisk = { script: string; args: readonly [string, string]; file: string | null }

/** `script`: lines that the monitor runs before the sandbox. The paths exist in the monitor's namespace only. */
export type LobbyDisk = { script: readonly string[]; scratch: string; root: string | null }

export class Disks {
  readonly kind: DiskKind
  /** Where each monitor mounts its disk, in a namespace of its own. For all others it is an empty folder. */
  readonly mount_point: string
  readonly #files_folder: string
  #made = 0

  /** `folder`: of the platform. What an earlier process left there is removed. */
  constructor(kind: DiskKind, folder: string) {
    this.kind = kind
    // A link is not followed from the root folder of another process.
    this.mount_point = join(realpathSync(folder), 'disk')
    this.#files_folder = join(folder, 'new-disks')
    rmSync(this.#files_folder, { recursive: true, force: true })
    mkdirSync(this.mount_point, { recursive: true, mode: 0o711 })
  }

  bytesFor(tier: Tier): number {
    return this.kind === 'file' ? tier.disk_bytes : tier.tmp_bytes
  }

  /** `removeFile` is to be called once the monitor has mounted it, or has ended. */
  create(bytes: number): NewDisk {
    if (this.kind === 'memory') return newDisk('memory', memoryOptions(bytes), this.mount_point)
    const path = join(this.#files_folder, `${process.pid}-${this.#made++}`)
    mkdirSync(this.#files_folder, { recursive: true, mode: 0o700 })
    makeSparse(path, bytes)
    return newDisk('file', path, this.mount_point)
  }

  /**
   * Makes the lobby's folders on the disk of this monitor. `image_folder`: of a container image. Returns null where the sandbox
   * makes the lobby's writable folders.
   */
  prepare(monitor_pid: number, image_folder: string | null, uid: number | null): LobbyDisk | null {
    if (uid === null || (this.kind === 'memory' && image_folder === null)) return null
    const disk = `/proc/${monitor_pid}/root${this.mount_point}`
    if (statSync(disk).dev === statSync(this.mount_point).dev) throw new Error('The monitor of a lobby has no disk.')
    const scratch = join(disk, 'scratch')
    mkdirSync(scratch, { mode: 0o700 })
    chownSync(scratch, uid, uid)
    if (image_folder !== null) {
      for (const name of IMAGE_FOLDERS) mkdirSync(join(disk, name))
      chmodSync(join(disk, 'upper'), shownMode(statSync(image_folder).mode))
    }
    return {
      script: image_folder === null ? [] : imageScript(this.mount_point, image_folder),
      scratch: join(this.mount_point, 'scratch'),
      root: image_folder === null ? null : join(this.mount_point, 'merged'),
    }
  }
}

/** The file has no other name: its room is free again when the last process of the monitor has ended. */
export function removeFile({ file }: NewDisk): void {
  if (file !== null) rmSync(file, { force: true })
}

function newDisk(kind: DiskKind, source: string, mount_point: string): NewDisk {
  return { script: MAKE[kind], args: [source, mount_point], file: kind === 'file' ? source : null }
}

/** Paths are relative where they are options of a mount, in which some characters have a meaning. */
function imageScript(mount_point: string, image_folder: string): string[] {
  const bind = `mount --bind ${quoteForShell(image_folder)} lower`
  return [`cd ${quoteForShell(mount_point)} && ${bind} && ${OVERLAY} && cd / || exit 125`]
}

/** It takes room on the machine's disk as the lobby writes. */
function makeSparse(path: string, bytes: number): void {
  const fd = openSync(path, 'wx', 0o600)
  try {
    ftruncateSync(fd, bytes)
  } finally {
    closeSync(fd)
  }
}

function memoryOptions(bytes: number): string {
  const inodes = Math.max(INODES_MIN, Math.ceil(bytes / BYTES_PER_INODE))
  return `size=${bytes},nr_inodes=${inodes},mode=0711`
}
