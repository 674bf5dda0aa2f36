// The container image of a release, by the engine of this machine: an archive for each processor that the engine can build for.
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ENGINES = ['docker', 'podman', 'buildah'] as const
/** The names of an engine for the processors that the base images have. */
const PROCESSORS = { amd64: 'x64', arm64: 'arm64' } as const
const FILE = 'deploy/Containerfile'

/** What became of the image: the files that were written, and a sentence for each that was not. */
export type Images = { files: string[]; missing: string[] }

/** `to`: the folder of the archives. */
export function buildImages(root: string, to: string, version: string): Images {
  const engine = ENGINES.find((name) => spawnSync(name, ['--version']).status === 0)
  if (engine === undefined) {
    const missing = `No image was built: this machine has none of ${ENGINES.join(', ')}. Build it with: docker build -f ${FILE} -t muster:${version} .`
    return { files: [], missing: [missing] }
  }
  const images: Images = { files: [], missing: [] }
  for (const [processor, own] of Object.entries(PROCESSORS)) {
    const tag = `localhost/muster:${version}-${processor}`
    const name = `muster-${version}-${processor}.image.tar`
    const file = join(to, name)
    const build = ['build', '--file', FILE, '--platform', `linux/${processor}`, '--tag', tag, '.']
    try {
      execFileSync(engine, build, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
      const save =
        engine === 'buildah' ? ['push', tag, `docker-archive:${file}:${tag}`] : ['save', '--output', file, tag]
      execFileSync(engine, save, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
      images.files.push(name)
    } catch (error) {
      const why = own === process.arch ? '' : ' Another processor needs emulation (binfmt) or a machine of its own.'
      const sentence = error instanceof Error ? error.message.split('\n')[0] : String(error)
      images.missing.push(`No image for ${processor}: ${sentence}.${why}`)
    }
  }
  return images
}
