// Tries out whether this machine makes the disks of lobbies: a monitor makes one, and mounts the root of a container image
// on it as for a lobby.
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Disks, removeFile } from './lobby-disk.ts'
import { startMonitor } from './monitor.ts'

const PROBE_BYTES = 2 ** 20
/** Time limit of the mount of the image. */
const PROBE_MS_MAX = 10_000
/** Exit code of the trial monitor, which shows that its whole script has run. */
const PROBE_CODE = 7

/** `folder`: of the platform. Returns null when it works, otherwise the error text. */
export async function probeDisk(disks: Disks, folder: string, image_folder: string): Promise<string | null> {
  const disk = disks.create(PROBE_BYTES)
  const { child, control, ready } = startMonitor([], [], disk)
  const script_file = join(folder, 'launch')
  let printed = ''
  try {
    await ready
    // This process waits for its end.
    child.ref()
    control.ref()
    control.on('data', (part) => {
      printed += String(part)
    })
    const { script } = disks.prepare(child.pid!, image_folder, 0)!
    writeFileSync(script_file, [...script, `exit ${PROBE_CODE}`].join('\n'), { mode: 0o600 })
    const ended = once(child, 'close', { signal: AbortSignal.timeout(PROBE_MS_MAX) })
    control.write(`${folder}\n`)
    const [code] = await ended
    return code === PROBE_CODE ? null : printed.trim().split('\n').slice(-2).join(' ') || `exit code ${code}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    removeFile(disk)
    rmSync(script_file, { force: true })
    control.destroy()
    child.kill('SIGKILL')
  }
}
