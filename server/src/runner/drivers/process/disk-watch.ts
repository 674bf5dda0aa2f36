// Whether the disk of a lobby is full at the lobby's end. A program that could not write mostly ends with a code of its own,
// which says nothing. The disk is mounted in the lobby's mount namespace only, so its folder is opened while the lobby
// runs, and asked after the end. That keeps the disk until its end is recorded; it never outlives this process.
import { closeSync, constants, fstatSync, openSync, statfsSync, statSync } from 'node:fs'
import { codeOf } from '../../../node/procfs.ts'

/** Less than this is left: no write of a usual size succeeds. */
const FREE_BYTES_MIN = 65_536
/** Errors of a mount namespace that is gone. */
const NOT_THERE = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR']

/** `bytes`: no room is left. `files`: no further file can be made. */
export type FullDisk = 'bytes' | 'files'

export class DiskWatch {
  readonly #mount_point: string
  /** By lobby id. */
  readonly #open = new Map<string, number>()

  /** `mount_point`: of each monitor. */
  constructor(mount_point: string) {
    this.#mount_point = mount_point
  }

  /** Opens the disk, unless it is open. Cheap: called every second. `pid`: of the monitor. */
  open(lobby_id: string, pid: number): void {
    if (this.#open.has(lobby_id)) return
    try {
      const fd = openSync(`/proc/${pid}/root${this.#mount_point}`, constants.O_RDONLY | constants.O_DIRECTORY)
      // Without a mount it is an empty folder of the machine's disk.
      if (fstatSync(fd).dev === statSync(this.#mount_point).dev) closeSync(fd)
      else this.#open.set(lobby_id, fd)
    } catch (error) {
      if (!NOT_THERE.includes(codeOf(error) ?? '')) throw error
    }
  }

  /** Closes the disk. Null: it has room, or was never seen. */
  close(lobby_id: string): FullDisk | null {
    const fd = this.#open.get(lobby_id)
    if (fd === undefined) return null
    this.#open.delete(lobby_id)
    try {
      const { bavail, bsize, files, ffree } = statfsSync(`/proc/self/fd/${fd}`)
      if (bavail * bsize < FREE_BYTES_MIN) return 'bytes'
      return files > 0 && ffree === 0 ? 'files' : null
    } finally {
      closeSync(fd)
    }
  }

  closeAll(): void {
    for (const fd of this.#open.values()) closeSync(fd)
    this.#open.clear()
  }
}
