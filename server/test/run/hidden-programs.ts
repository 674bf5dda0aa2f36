// Runs a command on this machine as if no optional program was installed: in a mount namespace of its own, where their folders
// have a layer in which they are removed. So nothing finds them, not by PATH and not by an absolute path, and no other
// process is affected. An ordinary user does the same in a user namespace, and loses its capabilities before the command.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { OPTIONAL_PROGRAMS } from './optional-programs.ts'

/** Where programs lie that a platform starts, whatever PATH says. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** $1: a folder for the layers. The files to remove, `--` and the command follow. */
const SCRIPT = `
set -e
umask 022
layers=$1 known=: count=0
shift
mount -t tmpfs -o mode=755 tmpfs "$layers"
while [ "$1" != -- ]; do
  folder=\${1%/*}
  case $known in *":$folder:"*) ;; *)
    known=$known$folder: count=$((count + 1)) layer=$layers/$count
    mkdir "$layer" "$layer/upper" "$layer/work"
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" "$folder"
  esac
  rm -f "$1"
  shift
done
shift
exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"
`

/** The command that runs `command` without the programs. `folder`: of the caller, not yet there. */
export function withoutPrograms(folder: string, command: readonly string[]): [string, ...string[]] {
  mkdirSync(folder)
  const namespaces =
    process.geteuid?.() === 0 ? ['--mount'] : ['--user', '--map-current-user', '--keep-caps', '--mount']
  return ['unshare', ...namespaces, 'sh', '-c', SCRIPT, 'sh', folder, ...optionalFiles(), '--', ...command]
}

/**
 * Why programs cannot be hidden here, as the reason of a skipped test. Null: they can. A chroot, and many a container, refuses
 * namespaces to an ordinary user. `folder`: as of withoutPrograms.
 */
export function whyNotHidden(folder: string): string | null {
  const [program, ...args] = withoutPrograms(folder, ['true'])
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0 ? null : 'needs namespaces of mounts'
}

function optionalFiles(): string[] {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS].filter((folder) =>
    existsSync(folder),
  )
  const real_folders = [...new Set(folders.map((folder) => realpathSync(folder)))]
  const names = Object.entries(OPTIONAL_PROGRAMS).flatMap(([name, row]) => [
    name,
    ...(row.names ?? []),
    ...(row.with ?? []),
  ])
  const [absolute, plain] = [
    names.filter((name) => name.startsWith('/')),
    names.filter((name) => !name.startsWith('/')),
  ]
  const paths = [
    ...absolute.flatMap((path) => globSync(path)),
    ...real_folders.flatMap((folder) => plain.map((name) => join(folder, name))),
  ]
  return [...new Set(paths)].filter((path) => existsSync(path))
}
