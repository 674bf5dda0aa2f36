// Deploys of container images: the file of `docker save`, and OCI image layouts as a tar and as a folder.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { createGameNamespaceTokenPublic, findLobby, getGameById, listGameBuilds } from '@musterhost/contract'
import { checkVersionConfig } from '@musterhost/contract/version-check'
import { MUSTER } from '../../server/test/run/built-programs.ts'
import { lacking } from '../../server/test/run/optional-programs.ts'
import {
  buildahImage,
  busyboxRoot,
  compressFile,
  IMAGE_TOOLS,
  makeFolder,
  muslRoot,
  umociImage,
} from '../../server/test/support/container-images.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'

/** The image names its program, so the config has no `args`. */
const MATCHMAKER = `matchmaker:
  game_modes: { default: { max_players: 4, idle_lobbies: { min: 1, max: 1 } } }
  docker: { ready: listening, ports: { game: { protocol: http } } }
`
const OPTIONS = { entrypoint: ['/bin/sh', '-c', 'exec /bin/busybox httpd -f -p "$PORT_GAME"'] }
const USAGE = 2
/** All commands of the page. */
const PAGE_MS_MAX = 120_000

function setImage({ write, folder }: DeployedProject, server: string): void {
  const [game] = readFileSync(join(folder, 'muster.yaml'), 'utf8').split('\n')
  write('muster.yaml', `${game}\nserver: ${server}\n${MATCHMAKER}`)
}

test('deploys of container images', async (t) => {
  const missing = lacking(...IMAGE_TOOLS)
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const folder = makeFolder(t)
  const roots = [busyboxRoot(folder)]
  const saved = buildahImage(folder, roots, OPTIONS, 'docker-archive')
  umociImage(folder, roots, OPTIONS)
  const layout = join(folder, 'layout')
  await t.test('the commands of docs/images.md end with a lobby that plays', (t) => page(t, platform, folder))
  await t.test('each form of an image becomes a lobby', (t) => eachForm(t, platform, saved, layout))
  await t.test('the version config overrides what the image says', (t) => overridden(t, platform))
  await t.test('every lobby listens on the same fixed number', (t) => fixedPort(t, platform, saved))
  await t.test('a server of another C library is ready when it listens, and plays', (t) => otherLibrary(t, platform))
  await t.test('an image that is there is not sent again', (t) => sentOnce(t, platform, saved))
  await t.test('what is no image is refused with its member', (t) => refused(t, platform, saved, folder))
})

/** Where a new player reaches the port `game` of a lobby. */
async function playerUrl(platform: Platform, { game_id }: DeployedProject): Promise<string> {
  const params = { game_id: game_id }
  const { game } = await platform.client.call(getGameById, { params })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params: { ...params, namespace_id } })
  const { ports } = await platform.as(token).call(findLobby, { body: { game_modes: ['default'] } })
  return ports.game!.url
}

/** The files, the config and the commands of docs/images.md, with images in a folder of the test. */
async function page(t: TestContext, platform: Platform, folder: string): Promise<void> {
  const text = readFileSync(new URL('../../docs/images.md', import.meta.url), 'utf8')
  const block = (language: string): string =>
    new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(text)?.[1] ?? assert.fail(`no ${language}`)
  const docker = { image_id: randomUUID(), ...(JSON.parse(`{${block('json')}}`) as object) }
  assert.deepEqual(checkVersionConfig(null, { matchmaker: { docker, game_modes: { default: {} } } }), [])
  const project = await createProject(t, platform, { game: 'hello' })
  project.write('Containerfile', block('dockerfile'))
  project.write('muster.yaml', block('yaml'))
  project.write('pages/index.html', 'hello from an image')
  copyFileSync(join(folder, 'root/bin/busybox'), join(project.folder, 'busybox'))
  const storage = `[storage]\ndriver = "vfs"\ngraphroot = "${folder}/page"\nrunroot = "${folder}/page-run"\n`
  writeFileSync(join(folder, 'storage.conf'), storage)
  const program = join(project.folder, 'bin/muster')
  project.write('bin/muster', `#!/bin/sh\nexec '${process.execPath}' '${MUSTER}' "$@"\n`)
  chmodSync(program, 0o755)
  const env = {
    ...project.muster.env,
    PATH: `${dirname(program)}:${project.muster.env.PATH}`,
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    BUILDAH_ISOLATION: 'chroot',
  }
  await promisify(execFile)('bash', ['-e', '-c', block('sh')], { cwd: project.folder, env, timeout: PAGE_MS_MAX })
  const url = await playerUrl(platform, project)
  assert.equal(await (await fetch(`${url}/index.html`)).text(), 'hello from an image')
}

async function eachForm(t: TestContext, platform: Platform, saved: string, layout: string): Promise<void> {
  const forms = [
    [saved, 'saved.tar'],
    [compressFile(saved, 'gzip'), 'saved.tar.gz'],
    [compressFile(`${layout}.tar`, 'zstd'), 'layout.tar.zst'],
    [layout, 'layout'],
  ] as const
  const project = await createProject(t, platform)
  for (const [source, name] of forms) {
    execFileSync('cp', ['-r', source, join(project.folder, name)])
    setImage(project, `{ image: ${name} }`)
    const result = await project.deploy()
    assert.ok(Number(result.sent_bytes) > 0, name)
    assert.ok(typeof result.lobby_id === 'string', `${name}: ${JSON.stringify(result)}`)
  }
}

/** Writes what it knows about itself, and serves that until a signal ends it. */
const scriptOf = (word: string): string =>
  `{ id -u; id -g; echo "${word} $(/bin/busybox pwd) $LEVEL $0 $*"; cat /srv/game/secret || echo none; } > /scratch/report
  trap "echo by USR1; exit 0" USR1; trap "echo by INT; exit 0" INT
  /bin/busybox httpd -p $PORT_GAME -h /scratch; while :; do sleep 0.05; done`
/** Of a file that only root of the image may read. */
const SECRET_MODE = 0o600

async function overridden(t: TestContext, platform: Platform): Promise<void> {
  const folder = makeFolder(t)
  const root = busyboxRoot(folder, { 'srv/game/secret': 'secret\n', 'srv/other/file': '' })
  chmodSync(join(root, 'srv/game/secret'), SECRET_MODE)
  const saved = umociImage(folder, [root], {
    entrypoint: ['/bin/sh', '-c', scriptOf('image')],
    cmd: ['from', 'image'],
    env: { LEVEL: '1' },
    ...{ working_folder: '/srv/game', user: '99:98', stop_signal: 'SIGINT' },
  })
  const project = await createProject(t, platform)
  copyFileSync(saved, join(project.folder, 'game.tar'))
  const reportOf = async (docker: string): Promise<{ report: string[]; log: string }> => {
    setImage(project, '{ image: game.tar }')
    const text = readFileSync(join(project.folder, 'muster.yaml'), 'utf8')
    project.write('muster.yaml', text.replace('docker: {', `docker: { ${docker}`))
    const { lobby_id } = await project.deploy()
    const url = await playerUrl(platform, project)
    const report = (await (await fetch(`${url}/report`)).text()).trim().split('\n')
    assert.equal((await project.run(['stop', String(lobby_id), '--yes'])).code, 0)
    const log = await until('the log of the stopped server', async () => {
      const { stdout } = await project.run(['logs', '--lobby', String(lobby_id)])
      return /by (?:INT|USR1)/.exec(stdout)?.[0]
    })
    return { report, log }
  }
  assert.deepEqual(await reportOf(''), { report: ['99', '98', 'image /srv/game 1 from image', 'none'], log: 'by INT' })
  const members = `entrypoint: ${JSON.stringify(['/bin/sh', '-c', scriptOf(`changed \${GAME_MODE_NAME}`)])}, args: ['a', '\${PORT_GAME}'], env: { LEVEL: '2' },
    working_folder: /srv/other, user: '0:77', stop_signal: SIGUSR1,`
  const { report, log } = await reportOf(members)
  assert.match(report[2]!, /^changed default \/srv\/other 2 a \d+$/)
  assert.deepEqual([report[0], report[1], report[3], log], ['0', '77', 'secret', 'by USR1'])
}

async function fixedPort(t: TestContext, platform: Platform, saved: string): Promise<void> {
  const project = await createProject(t, platform)
  copyFileSync(saved, join(project.folder, 'game.tar'))
  const [game] = readFileSync(join(project.folder, 'muster.yaml'), 'utf8').split('\n')
  const text = `${game}\nserver: { image: game.tar }\nmatchmaker:
  game_modes: { default: { max_players: 1 } }
  docker:
    entrypoint: [/bin/busybox, httpd, -f, -p, '7777', -h, /scratch]
    files: { lobby: '\${LOBBY_ID} \${PORT_GAME}' }
    ready: listening
    ports: { game: { protocol: http, port: 7777 } }
`
  project.write('muster.yaml', text)
  await project.deploy()
  const seen = new Set<string>()
  for (const url of [await playerUrl(platform, project), await playerUrl(platform, project)]) {
    const [lobby_id = '', port] = (await (await fetch(`${url}/lobby`)).text()).split(' ')
    assert.ok(url.includes(lobby_id) && lobby_id !== '', `${url}: ${lobby_id}`)
    assert.equal(port, '7777')
    seen.add(lobby_id)
  }
  assert.equal(seen.size, 2)
}

async function otherLibrary(t: TestContext, platform: Platform): Promise<void> {
  const missing = lacking('musl-gcc')
  if (missing !== null) return t.skip(missing)
  const folder = makeFolder(t)
  const project = await createProject(t, platform)
  const image = buildahImage(folder, [muslRoot(folder)], { entrypoint: ['/srv/server'] }, 'docker-archive')
  copyFileSync(image, join(project.folder, 'game.tar'))
  setImage(project, '{ image: game.tar }')
  await project.deploy()
  assert.match(await (await fetch(await playerUrl(platform, project))).text(), /^\/srv\/server\n\/lib\/ld-musl-\S+\n$/)
}

async function sentOnce(t: TestContext, platform: Platform, saved: string): Promise<void> {
  const project = await createProject(t, platform)
  mkdirSync(join(project.folder, 'out'))
  // The build command writes the image, as `docker save` would.
  setImage(project, `{ image: out/game.tar, build: 'cp ${saved} out/game.tar' }`)
  const first = await project.deploy('--detach')
  assert.equal(first.is_new, true)
  rmSync(join(project.folder, '.muster'), { recursive: true, force: true })
  const second = await project.run(['deploy', '--detach'])
  assert.equal(second.code, 0, second.stderr)
  assert.match(second.stderr, /server: image game\.tar, unchanged/)
  const { builds } = await platform.client.call(listGameBuilds, { params: project, query: {} })
  assert.deepEqual(
    builds.map(({ build_id }) => build_id),
    [first.build_id],
  )
}

async function refused(t: TestContext, platform: Platform, saved: string, folder: string): Promise<void> {
  const project = await createProject(t, platform)
  const refusalOf = async (server: string): Promise<string> => {
    setImage(project, server)
    const { code, stderr } = await project.run(['deploy', '--detach'])
    assert.notEqual(code, 0, server)
    return stderr
  }
  project.write('text.tar', 'no tar')
  assert.match(await refusalOf('{ image: text.tar }'), /server\.image: .*text\.tar is not a readable tar/)
  execFileSync('tar', ['-C', folder, '-cf', join(project.folder, 'other.tar'), 'root'])
  assert.match(await refusalOf('{ image: other.tar }'), /other\.tar has neither a manifest\.json nor an index\.json/)
  copyFileSync(saved, join(project.folder, 'cut.tar'))
  truncateSync(join(project.folder, 'cut.tar'), 100_000)
  assert.match(await refusalOf('{ image: cut.tar }'), /server\.image: .*cut\.tar/)
  symlinkSync(saved, join(project.folder, 'link.tar'))
  assert.match(await refusalOf('{ image: link.tar }'), /link\.tar[\s\S]*names the file itself/)

  // Several images: only the platform reads the manifest.
  const several = join(folder, 'several')
  mkdirSync(several)
  writeFileSync(join(several, 'manifest.json'), '[{}, {}]')
  execFileSync('tar', ['-C', several, '-cf', join(project.folder, 'several.tar'), 'manifest.json'])
  assert.match(await refusalOf('{ image: several.tar }'), /server\.image: .*several\.tar: .*Save one image/)

  const shown = await project.run(['config', 'check'])
  assert.equal(shown.code, 0, shown.stderr)
  for (const [server, message] of [
    ['{ image: none.tar }', /server\.image: There is no image none\.tar/],
    ['{ image: ../game.tar }', /server\.image: .*outside of the folder/],
    ['{ image: server }', /server\.image: .*no OCI image layout/],
    ['{ image: text.tar, folder: server }', /server\.folder: .*exclude each other/],
  ] as const) {
    setImage(project, server)
    const { code, stdout, stderr } = await project.run(['config', 'check'])
    assert.equal(code, USAGE)
    assert.match(`${stdout}${stderr}`, message)
  }
  setImage(project, '{ image: other.tar }')
  const dev = await project.run(['dev'])
  assert.equal(dev.code, USAGE)
  assert.match(dev.stderr, /server\.image is a container image/)
}
