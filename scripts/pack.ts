// `npm run pack -- FOLDER`: the packages `musterhost` and `musterhost-platform` as files that npm installs or publishes. The
// checkout is only read. npm packs each of them from a folder of its own.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { writeCommandFile } from './package/command-file.ts'
import { writeCommandPackage, writePlatformPackage } from './package/packages.ts'

const ROOT = join(import.meta.dirname, '..')

const [target] = process.argv.slice(2)
if (target === undefined) {
  console.error('npm run pack -- FOLDER')
  process.exitCode = 2
} else {
  execFileSync(process.execPath, [join(ROOT, 'hub/build.ts'), '--when-stale'], { stdio: 'inherit' })
  const to = resolve(target)
  mkdirSync(to, { recursive: true })
  const folder = mkdtempSync(join(tmpdir(), 'muster-pack-'))
  try {
    await writeCommandPackage(ROOT, join(folder, 'command'), { has_platform: true })
    await writePlatformPackage(ROOT, join(folder, 'platform'))
    mkdirSync(join(folder, 'platform/command'))
    await writeCommandFile(ROOT, join(folder, 'platform/command/cli.tgz'))
    chmodSync(join(folder, 'command/dist/muster.js'), 0o755)
    for (const name of ['command', 'platform']) {
      const args = ['pack', '--json', '--pack-destination', to]
      const printed = execFileSync('npm', args, { cwd: join(folder, name), encoding: 'utf8' })
      const [packed] = JSON.parse(printed) as { filename: string; size: number; unpackedSize: number }[]
      if (packed === undefined) throw new Error(`npm packed no ${name}.`)
      console.log(
        `${join(to, packed.filename)}: ${megabytes(packed.size)} MB, ${megabytes(packed.unpackedSize)} unpacked`,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
