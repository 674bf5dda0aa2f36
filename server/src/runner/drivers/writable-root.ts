// The root of a lobby that runs a container image: overlayfs of the image's folder and a writable layer in memory of a
// limited size. It is mounted in a mount namespace of the lobby's monitor, so it is gone with the last process of the lobby,
// also after a kill -9 of the runner: there is nothing to unmount.
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MONITOR_ENV } from './monitor.ts'

/** Bytes of the writable layer for each of its files and folders. */
const BYTES_PER_INODE = 4_096
const INODES_MIN = 1_024
/** Time limit of the trial mount. */
const PROBE_MS_MAX = 10_000

/** $1: the image's folder, $2: an empty folder, $3: bytes, $4: inodes. The paths are arguments, never part of a script. */
const MOUNT = `
build=$1 root=$2 bytes=$3 inodes=$4
shift 4
mount -t tmpfs -o "size=$bytes,nr_inodes=$inodes,mode=0711" lobby-root "$root" && cd "$root" || exit 125
mkdir lower upper work merged && chmod 0755 upper && mount --bind "$build" lower || exit 125
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work lobby-root merged && cd / || exit 125
exec "$@"
`

/** The empty folder on which the root is mounted, and the path of the mounted root. */
export function makeRootFolder(folder: string): { mount_point: string; root: string } {
  const mount_point = join(folder, 'root')
  mkdirSync(mount_point, { recursive: true, mode: 0o711 })
  return { mount_point, root: join(mount_point, 'merged') }
}

/** The command that mounts the root and becomes the rest of the command line. */
export function withWritableRoot(build_folder: string, mount_point: string, bytes: number): string[] {
  const inodes = Math.max(INODES_MIN, Math.ceil(bytes / BYTES_PER_INODE))
  return [
    ...['unshare', '--mount', '--propagation', 'private', '--'],
    ...['/bin/sh', '-c', MOUNT, 'sh', build_folder, mount_point, String(bytes), String(inodes)],
  ]
}

/** Mounts a root once. Returns null when it works, otherwise the error text. */
export async function probeWritableRoot(build_folder: string, mount_point: string): Promise<string | null> {
  const [program, ...args] = [...withWritableRoot(build_folder, mount_point, 2 ** 20), '/bin/true']
  try {
    await promisify(execFile)(program!, args, { timeout: PROBE_MS_MAX, env: MONITOR_ENV })
    return null
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return (stderr || String(error)).split('\n').slice(-2).join(' ')
  }
}
