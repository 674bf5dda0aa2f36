// The command line of a lobby: what its monitor becomes, with or without bubblewrap.
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inTerminal } from '@musterhost/contract'
import { inNamespace } from '../../network/namespace.ts'
import type { GroupView } from '../cgroups.ts'
import type { RunSpec, ScratchFile } from '../driver.ts'
import { HOST_PROGRAM_FOLDERS } from '../programs/find-program.ts'
import { IMAGES_GID } from '../uids.ts'
import { bubblewrapArgs, bubblewrapCommand } from './bubblewrap.ts'
import type { Host } from './host.ts'
import type { LobbyDisk } from './lobby-disk.ts'
import { asUser, exportsOf, type LaunchSpec, plainCommand, withEnvironment } from './monitor.ts'

export type LobbyCommand = Pick<LaunchSpec, 'script' | 'command' | 'args' | 'working_folder' | 'seccomp'>

/**
 * `folder`: that of the lobby. `program`: found, with its arguments. `uid`: the lobby's own, if it has one. `groups`: the
 * control groups that it sees. `disk`: of its monitor, if it uses one.
 */
export function lobbyCommand(
  host: Host,
  folder: string,
  spec: RunSpec,
  program: readonly string[],
  { uid, groups, disk }: { uid: number | null; groups: readonly GroupView[]; disk: LobbyDisk | null },
): LobbyCommand {
  const { bubblewrap, files } = host
  if (bubblewrap === null) {
    const args = exportsOf(plainEnvironment(host, folder, spec, uid))
    writeScratchFiles(scratchOf(folder), spec.files ?? [], uid)
    const plain = withEnvironment(program)
    const command = plainCommand(spec.lobby_id, [...asUser(uid), ...(spec.has_terminal ? inTerminal(plain) : plain)])
    return { script: [], command, args, working_folder: spec.build_folder, seccomp: null }
  }
  const enter = spec.network ? inNamespace(spec.network.namespace) : []
  // Where nothing can be mounted, the lobby's own user enters the folder of the image.
  const enters_image = disk === null && spec.image != null && uid !== null
  if (enters_image) openToLobbies(spec.build_folder)
  const boxed = [...bubblewrapCommand(spec.lobby_id, bubblewrap.disable_userns), ...program]
  const command = [
    ...enter,
    ...asUser(uid, enters_image ? IMAGES_GID : null),
    ...(spec.has_terminal ? inTerminal(boxed) : boxed),
  ]
  return {
    script: disk?.script ?? [],
    command,
    args: bubblewrapArgs(files, { ...spec, disk, groups }),
    working_folder: '/',
    seccomp: files.seccomp,
  }
}

/** Lobbies get what the image grants, by a group that no other user is in. A previous version had opened it to all users. */
function openToLobbies(image_folder: string): void {
  const { mode, uid } = statSync(image_folder)
  chmodSync(image_folder, mode & 0o770)
  chownSync(image_folder, uid, IMAGES_GID)
}

/** Its writable folder where it runs without bubblewrap. */
export const scratchOf = (folder: string): string => join(folder, 'scratch')

/** Two folders of the lobby's own replace the private ones of the sandbox. Only the disk bounds their size. */
function plainEnvironment(host: Host, folder: string, spec: RunSpec, uid: number | null): Record<string, string> {
  const own = { HOME: scratchOf(folder), TMPDIR: join(folder, 'tmp') }
  for (const path of Object.values(own)) {
    mkdirSync(path, { mode: 0o700 })
    if (uid !== null) chownSync(path, uid, uid)
  }
  return { ...spec.env, PATH: [host.programs_folder, ...HOST_PROGRAM_FOLDERS].join(':'), ...own }
}

function writeScratchFiles(scratch: string, files: readonly ScratchFile[], uid: number | null): void {
  for (const { path, content } of files) {
    const folders = path.split('/').slice(0, -1)
    for (const [index] of folders.entries()) {
      const folder = join(scratch, ...folders.slice(0, index + 1))
      if (existsSync(folder)) continue
      mkdirSync(folder, { mode: 0o700 })
      if (uid !== null) chownSync(folder, uid, uid)
    }
    writeFileSync(join(scratch, path), content, { mode: 0o600, flag: 'wx' })
    if (uid !== null) chownSync(join(scratch, path), uid, uid)
  }
}
