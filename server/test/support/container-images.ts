// Container images for tests: made by buildah and umoci from programs of this machine, and forged ones.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { type TarItem, tarOf } from '../archives/forgery.ts'
import { findProgram, type Need } from '../run/optional-programs.ts'

const TOOL_MS_MAX = 120_000

export const IMAGE_TOOLS = ['root', 'buildah', 'umoci', 'busybox'] as const satisfies Need[]

export type ImageOptions = {
  entrypoint?: string[]
  cmd?: string[]
  env?: Record<string, string>
  user?: string
  working_folder?: string
  stop_signal?: string
}

/** A folder for one test. */
export function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-image-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A root with busybox as its only program, and further text files. */
export function busyboxRoot(folder: string, files: Record<string, string> = {}): string {
  const root = join(folder, 'root')
  for (const name of ['bin', 'etc', 'srv/game']) mkdirSync(join(root, name), { recursive: true })
  copyFileSync(findProgram('busybox')!, join(root, 'bin/busybox'))
  for (const name of ['sh', 'id', 'env', 'ls', 'cat', 'sleep', 'touch', 'dd', 'stat', 'readlink']) {
    execFileSync('ln', ['-s', '/bin/busybox', join(root, 'bin', name)])
  }
  writeFiles(root, files)
  return root
}

/** A root with the machine's Python, its libraries and its own copy of the C library. */
export function pythonRoot(folder: string, files: Record<string, string>): string {
  const root = join(folder, 'python-root')
  const python = execFileSync('python3', ['-c', 'import os, sys; print(os.path.realpath(sys.executable))'], {
    encoding: 'utf8',
  }).trim()
  copyLibraries(root, python)
  for (const path of [dirname(python), '/usr/bin']) mkdirSync(join(root, path), { recursive: true })
  copyFileSync(python, join(root, python))
  if (python !== '/usr/bin/python3') symlinkSync(python, join(root, 'usr/bin/python3'))
  const script = 'import sysconfig; print(sysconfig.get_path("stdlib"))'
  const library = execFileSync(python, ['-c', script], { encoding: 'utf8' }).trim()
  cpSync(library, join(root, library), {
    recursive: true,
    filter: (path) =>
      !/\/(?:__pycache__|test|tests|idlelib|lib2to3|dist-packages|site-packages|ensurepip|lib-dynload|config-[^/]*)$/.test(
        path,
      ),
  })
  writeFiles(root, files)
  return root
}

/** Prints the shared objects that it runs with, or serves that list over HTTP at PORT. */
const MUSL_SERVER = `
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void list(int fd) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, " r-xp ") && strchr(line, '/')) dprintf(fd, "%s", strchr(line, '/'));
  if (maps) fclose(maps);
}

int main(void) {
  char *port = getenv("PORT");
  if (!port) { list(1); return 0; }
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16)) return 1;
  for (int fd; (fd = accept(listener, 0, 0)) >= 0; close(fd)) {
    char request[4096];
    if (read(fd, request, sizeof request) <= 0) continue;
    dprintf(fd, "HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n");
    list(fd);
  }
  return 1;
}`

/** A root with a program of the C library musl and its loader, and nothing else. */
export function muslRoot(folder: string): string {
  const root = join(folder, 'musl-root')
  const program = join(root, 'srv/server')
  mkdirSync(dirname(program), { recursive: true })
  execFileSync('musl-gcc', ['-Wall', '-Werror', '-x', 'c', '-', '-o', program], { input: MUSL_SERVER, stdio: 'pipe' })
  const headers = execFileSync('readelf', ['--program-headers', program], { encoding: 'utf8' })
  const loader = /interpreter: (\/[^\]]+)\]/.exec(headers)![1]!
  mkdirSync(dirname(join(root, loader)), { recursive: true })
  copyFileSync(loader, join(root, loader))
  return root
}

/** A root with this Node, its libraries and its own copy of the C library. */
export function nodeRoot(folder: string, files: Record<string, string>): string {
  const root = join(folder, 'node-root')
  copyLibraries(root, process.execPath)
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  copyFileSync(process.execPath, join(root, 'usr/bin/node'))
  writeFiles(root, files)
  return root
}

function copyLibraries(root: string, program: string): void {
  const libraries = execFileSync('ldd', [program], { encoding: 'utf8' })
  for (const [path] of libraries.matchAll(/\/[^ ]+\.so[^ ]*/g)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
}

function writeFiles(root: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
    if (content.startsWith('#!')) chmodSync(join(root, path), 0o755)
  }
}

/** Builds and saves an image by buildah. Each root is a layer. `format`: what is saved. */
export function buildahImage(
  folder: string,
  roots: readonly string[],
  options: ImageOptions,
  format: 'docker-archive' | 'oci-archive',
): string {
  const buildah = (...args: string[]): string =>
    execFileSync('buildah', ['--root', join(folder, 'st'), '--runroot', join(folder, 'run'), ...args], {
      encoding: 'utf8',
      timeout: TOOL_MS_MAX,
      env: { PATH: process.env.PATH, HOME: folder, STORAGE_DRIVER: 'vfs', BUILDAH_ISOLATION: 'chroot' },
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  let base = 'scratch'
  for (const [index, root] of roots.entries()) {
    const container = buildah('from', '--pull-never', base)
    buildah('copy', '--quiet', container, `${root}/.`, '/')
    const is_last = index === roots.length - 1
    if (is_last) buildah('config', ...buildahConfig(options), container)
    base = `localhost/layer${index}`
    buildah('commit', '--quiet', container, base)
  }
  const path = join(folder, `${format}.tar`)
  rmSync(path, { force: true })
  buildah('push', '--quiet', base, `${format}:${path}${format === 'docker-archive' ? ':test:1' : ''}`)
  return path
}

function buildahConfig({ entrypoint, cmd, env = {}, user, working_folder, stop_signal }: ImageOptions): string[] {
  return [
    ...(entrypoint ? ['--entrypoint', JSON.stringify(entrypoint)] : []),
    ...(cmd ? ['--cmd', cmd.join(' ')] : []),
    ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ...(user === undefined ? [] : ['--user', user]),
    ...(working_folder === undefined ? [] : ['--workingdir', working_folder]),
    ...(stop_signal === undefined ? [] : ['--stop-signal', stop_signal]),
  ]
}

/** Builds an OCI layout by umoci and packs it by tar. Each root is a layer. */
export function umociImage(folder: string, roots: readonly string[], options: ImageOptions): string {
  const layout = join(folder, 'layout')
  const run = (program: string, ...args: string[]): void =>
    void execFileSync(program, args, { stdio: 'pipe', timeout: TOOL_MS_MAX })
  run('umoci', 'init', '--layout', layout)
  const image = `${layout}:latest`
  run('umoci', 'new', '--image', image)
  for (const [index, root] of roots.entries()) {
    const bundle = join(folder, `bundle${index}`)
    run('umoci', 'unpack', '--image', image, bundle)
    // cpSync of Node 24 gives folders other modes than those that it copies.
    run('cp', '-a', `${root}/.`, join(bundle, 'rootfs'))
    run('umoci', 'repack', '--image', image, bundle)
  }
  const { entrypoint = [], cmd = [], env = {}, user, working_folder, stop_signal } = options
  run(
    'umoci',
    ...['config', '--image', image],
    ...[
      ...entrypoint.flatMap((word) => ['--config.entrypoint', word]),
      ...cmd.flatMap((word) => ['--config.cmd', word]),
      ...Object.entries(env).flatMap(([name, value]) => ['--config.env', `${name}=${value}`]),
      ...(user === undefined ? [] : ['--config.user', user]),
      ...(working_folder === undefined ? [] : ['--config.workingdir', working_folder]),
      ...(stop_signal === undefined ? [] : ['--config.stopsignal', stop_signal]),
    ],
  )
  run('umoci', 'gc', '--layout', layout)
  const path = join(folder, 'layout.tar')
  run('tar', '-C', layout, '-cf', path, '.')
  return path
}

/** Compresses a file by a program of this machine. */
export function compressFile(path: string, program: 'gzip' | 'zstd'): string {
  execFileSync(program, ['-k', '-f', path], { stdio: 'pipe', timeout: TOOL_MS_MAX })
  return `${path}.${program === 'gzip' ? 'gz' : 'zst'}`
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

type Forgery = {
  /** Changes of the config, of the manifest and of the blobs, after everything else was made. */
  config?: Record<string, unknown>
  manifest?: Record<string, unknown>
  change?: (blobs: Map<string, Buffer>) => void
  diff_ids?: string[]
}

/** An OCI layout with these layers, forged without a tool. */
export function forgedImage(layers: readonly Buffer[], forgery: Forgery = {}): Buffer {
  const blobs = new Map<string, Buffer>()
  const put = (bytes: Buffer, mediaType: string) => {
    blobs.set(sha256(bytes), bytes)
    return { mediaType, digest: `sha256:${sha256(bytes)}`, size: bytes.length }
  }
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Entrypoint: ['/server'] },
    rootfs: { type: 'layers', diff_ids: forgery.diff_ids ?? layers.map((layer) => `sha256:${sha256(layer)}`) },
    ...forgery.config,
  }
  const manifest = {
    schemaVersion: 2,
    config: put(Buffer.from(JSON.stringify(config)), 'application/vnd.oci.image.config.v1+json'),
    layers: layers.map((layer) => put(layer, 'application/vnd.oci.image.layer.v1.tar')),
    ...forgery.manifest,
  }
  const descriptor = put(Buffer.from(JSON.stringify(manifest)), 'application/vnd.oci.image.manifest.v1+json')
  forgery.change?.(blobs)
  const index = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [descriptor] }))
  const items: TarItem[] = [{ name: 'oci-layout', body: Buffer.from('{"imageLayoutVersion":"1.0.0"}') }]
  for (const [name, body] of blobs) items.push({ name: `blobs/sha256/${name}`, body })
  return tarOf(...items, { name: 'index.json', body: index })
}

export function writeImage(folder: string, bytes: Buffer): string {
  const path = join(folder, 'forged.tar')
  writeFileSync(path, bytes)
  return path
}
