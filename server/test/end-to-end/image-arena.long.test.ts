import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildServer } from '../../../examples/arena/build.ts'
import { lacking } from '../run/optional-programs.ts'
import { buildahImage, compressFile, IMAGE_TOOLS, makeFolder, nodeRoot } from '../support/container-images.ts'
import { until } from '../support/until.ts'
import { startArena } from './arena.ts'
import { movesBefore, openBrowser, play } from './browser.ts'

test('two pages play in the arena that runs from a container image, through the edge', async (t) => {
  const missing = lacking(...IMAGE_TOOLS, 'chromium')
  if (missing !== null) return t.skip(missing)
  const browser = await openBrowser(t)
  if (browser === null) return
  const folder = makeFolder(t)
  const files = (await buildServer()).map(({ path, content }) => [`srv/${path}`, content.toString()] as const)
  const root = nodeRoot(folder, { ...Object.fromEntries(files), 'etc/passwd': 'arena:x:4321:4321::/:\n' })
  const options = { entrypoint: ['node'], cmd: ['server/main.js'], working_folder: '/srv', user: 'arena' }
  const image = compressFile(buildahImage(folder, [root], options, 'docker-archive'), 'gzip')
  const arena = await startArena(t, { deploy: ['--image', image, '--max-players', '2'] })

  const ada = await play(browser, arena.play_url, 'Ada')
  const bob = await play(browser, arena.play_url, 'Bob')
  assert.equal(await bob.lobby_id(), await ada.lobby_id())
  await ada.seesPlayers(2)
  await movesBefore(ada, 'Ada', bob)
  await movesBefore(bob, 'Bob', ada)
  await bob.leave()
  await ada.seesPlayers(1)
  await until('one lobby with one player', async () => (await arena.lobbies())[0]?.total_player_count === 1)
})
