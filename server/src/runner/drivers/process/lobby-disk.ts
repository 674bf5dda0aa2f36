// The disk of a lobby: a file system of a fixed size, with the lobby's writable folder and, for a container image, the
// changes of its root. It lies in a sparse file, which loses its name once it is mounted in a mount namespace of the
// lobby's monitor. So the disk is gone with the last process of the lobby, also after a kill -9 of the runner: there is
// nothing to unmount or to remove. Where no file can be mounted, the changes of a container image's root are in memory.
import { execFile } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { shownMode } from '../../images/unpack-image.ts'
import { PROGRAM_ENV } from '../../program-env.ts'
import type { RunSpec } from '../driver.ts'
import { SpareDisks } from './spare-disks.ts'

/** Bytes in memory for each file and folder. On a disk, mkfs chooses their number. */
const BYTES_PER_INODE = 4_096
const INODES_MIN = 1_024
/** Time limit of the trial mount. */
const PROBE_MS_MAX = 10_000
const MAKE_MS_MAX = 10_000
const PROBE_BYTES = 2 ** 20

/** No journal: a disk ends with its lobby. */
const MAKE = ['mkfs.ext4', '-q', '-F', '-m', '0', '-O', '^has_journal,^resize_inode', '-E', 'nodiscard'] as const
/** $1: the file of the disk, or the options of a file system in memory. $2: an empty folder. */
const MOUNT = {
  file: 'mount -t ext4 -o loop,nosuid,nodev,noatime,noinit_itable,discard "$1" "$2" && rm "$1"',
  memory: 'mount -t tmpfs -o "$1" lobby-disk "$2"',
} as const
/** $3: the lobby's uid. $4: the folder of a container image, or an empty text. $5: the mode of its root. The rest is the command. */
const USE = `
owner=$3 image=$4 mode=$5
cd "$2" && install -d -m 0700 -o "$owner" -g "$owner" scratch || exit 125
if [ -n "$image" ]; then
  mkdir lower upper work merged && chmod "$mode" upper && mount --bind "$image" lower || exit 125
  mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work lobby-root merged || exit 125
fi
cd / && shift 5 && exec "$@"
exit 125`

/** `file`: on the machine's disk, of the size of the tier. `memory`: of the size of the other writable folders. */
export type DiskKind = keyof typeof MOUNT

/** `command`: mounts the disk and becomes the rest of the command line. The paths exist in the monitor's namespace only. */
export type LobbyDisk = { command: readonly string[]; scratch: string; root: string | null }

/** `folder`: that of the lobby. `bytes`: also of the file system's tables. */
type DiskPlan = { folder: string; image_folder: string | null; uid: number; bytes: number }

export class Disks {
  readonly kind: DiskKind
  readonly #spares: SpareDisks

  /** `spare_folder`: for disks that are made ahead. It is emptied. */
  constructor(kind: DiskKind, spare_folder: string) {
    this.kind = kind
    this.#spares = new SpareDisks(spare_folder, makeFile)
  }

  /** Null: the lobby's writable folders are made by the sandbox. */
  make(folder: string, { build_folder, image, tier }: DiskSpec, uid: number | null): LobbyDisk | null {
    if (uid === null || (this.kind === 'memory' && !image)) return null
    const bytes = this.kind === 'file' ? tier.disk_bytes : tier.tmp_bytes
    const is_made = this.kind === 'file' && this.#spares.take(bytes, diskFile(folder))
    return mountDisk(this.kind, { folder, image_folder: image ? build_folder : null, uid, bytes }, is_made)
  }

  close(): Promise<void> {
    return this.#spares.close()
  }
}

type DiskSpec = Pick<RunSpec, 'build_folder' | 'image' | 'tier'>

/** `is_made`: its file is there, with a file system. */
function mountDisk(kind: DiskKind, { folder, image_folder, uid, bytes }: DiskPlan, is_made: boolean): LobbyDisk {
  const mount_point = join(folder, 'disk')
  mkdirSync(mount_point, { recursive: true, mode: 0o711 })
  const source = kind === 'file' ? diskFile(folder) : memoryOptions(bytes)
  if (kind === 'file' && !is_made) makeSparse(source, bytes)
  const make = kind === 'file' && !is_made ? `${MAKE.join(' ')} "$1" && ` : ''
  return {
    command: [
      ...['unshare', '--mount', '--propagation', 'private', '--'],
      // The paths are arguments, never part of a script.
      ...['/bin/sh', '-c', `${make}${MOUNT[kind]} || exit 125${USE}`, 'sh'],
      ...[source, mount_point, String(uid), image_folder ?? '', rootModeOf(image_folder)],
    ],
    scratch: join(mount_point, 'scratch'),
    root: image_folder === null ? null : join(mount_point, 'merged'),
  }
}

/** Octal digits. Not used without an image. */
function rootModeOf(image_folder: string | null): string {
  return image_folder === null ? '' : shownMode(statSync(image_folder).mode).toString(8)
}

/** Mounts a disk and an image's root once. Returns null when it works, otherwise the error text. */
export async function probeDisk(kind: DiskKind, folder: string, image_folder: string): Promise<string | null> {
  const { command } = mountDisk(kind, { folder, image_folder, uid: 0, bytes: PROBE_BYTES }, false)
  const [program, ...args] = [...command, '/bin/true']
  try {
    await promisify(execFile)(program!, args, { timeout: PROBE_MS_MAX, env: PROGRAM_ENV })
    return null
  } catch (error) {
    rmSync(diskFile(folder), { force: true })
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return (stderr || String(error)).split('\n').slice(-2).join(' ')
  }
}

const diskFile = (folder: string): string => join(folder, 'disk.ext4')

/** Makes an empty file system in a sparse file. Rejects with the error of the program. */
async function makeFile(path: string, bytes: number): Promise<void> {
  makeSparse(path, bytes)
  const [program, ...args] = MAKE
  await promisify(execFile)(program, [...args, path], { timeout: MAKE_MS_MAX, env: PROGRAM_ENV })
}

/** It takes room on the machine's disk as the lobby writes. */
function makeSparse(path: string, bytes: number): void {
  const fd = openSync(path, 'w', 0o600)
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
