// Problems that a real process, provider or disk causes, each with the way to what mends it. The other kinds are in
// first-hour.long.test.ts, platform.test.ts and certificate-problem.test.ts.
import assert from 'node:assert/strict'
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import test from 'node:test'
import { readStat } from '../../server/src/node/procfs.ts'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { gameWith, settings, turnstile } from '../../server/test/matchmaker/captcha-games.ts'
import { type CaptchaServer, startCaptchaServer } from '../../server/test/matchmaker/captcha-server.ts'
import { processesOf } from '../../server/test/supervisor/started.ts'
import { failureOf } from '../../server/test/support/refusal.ts'
import { until } from '../../server/test/support/until.ts'
import { press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, problemOf, signInAsAdmin, type View } from './steps.ts'

const BYTES_PER_MB = 1_000_000
/** Of the free space: the runner warns below twice the minimum, and starts lobbies above it. */
const MIN_SHARE = 0.7
const PROBLEM_MS = 600_000
const BACKUP_AGE_MS = 8 * 86_400_000
const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

type Scene = { hub: OpenHub; captcha: CaptchaServer; view: View }

test('problems of lobbies, providers and disks', async (t) => {
  const captcha = await startCaptchaServer(t)
  const { bavail, bsize } = await statfs(tmpdir())
  const env = {
    ...settings(captcha),
    MUSTER_RAYS_PER_SECOND: '100',
    MUSTER_LOBBY_DISK_FREE_MB_MIN: String(Math.trunc((bavail * bsize * MIN_SHARE) / BYTES_PER_MB)),
  }
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env })
  if (hub === null) return
  const view = await openView(hub)
  const scene: Scene = { hub, captcha, view }
  await signInAsAdmin(hub, view)
  await t.test('a server that hangs: its lobby is stopped from the list that the button opens', () =>
    stopStalled(scene),
  )
  await t.test('a captcha provider that fails: the button lists the failed requests, by keyboard', () =>
    readFailedRequests(scene),
  )
  await t.test('a disk that is nearly full: the button leads to the checks of the machine', () => checkDisk(scene))
  assert.deepEqual(view.faults, [])
  await view.context.close()
  await t.test('a platform without a backup for a week: the button leads to the page that says how', () =>
    findBackups(hub),
  )
})

async function stopStalled({ hub, view: { page } }: Scene): Promise<void> {
  const game = await hub.platform.game({ matchmaker: { game_modes: MODES } })
  const seat = await game.find()
  await (await hub.platform.game({ matchmaker: { game_modes: MODES } })).find()
  const { lobby_id } = seat.lobby
  const server = processesOf(lobby_id).find(({ command }) => command.split(' ', 1)[0]!.endsWith('node'))
  assert.ok(server !== undefined)
  process.kill(server.pid, 'SIGSTOP')
  await until('the server to be suspended', () => readStat(server.pid)?.state === 'T')
  // The runner takes a server for stalled when a connection waits.
  const waiting = fetch(seat.ports.game!.url!).catch(() => null)
  const problem = problemOf(page, '1 lobby stalled in prod')
  await problem.getByText('error', { exact: true }).waitFor()
  await problem.getByRole('link', { name: 'Game', exact: true }).waitFor()
  await problem.getByRole('link', { name: 'Show the stalled lobbies' }).click()
  await page.waitForURL(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}/lobbies?state=stalled`)
  const table = page.getByRole('table', { name: 'Running lobbies' })
  await table.getByRole('link', { name: lobby_id.slice(-8) }).waitFor()
  await page.getByRole('button', { name: 'Select all 1 shown' }).click()
  await page.getByRole('button', { name: 'Stop 1 lobby' }).click()
  await page.getByRole('dialog').getByRole('button', { name: /^Stop/ }).click()
  await page.getByText('No lobby runs. The first find starts one.').waitFor()
  await page.goto(hub.url)
  await page.getByRole('table', { name: 'Namespaces' }).waitFor()
  await problem.waitFor({ state: 'detached' })
  await waiting
}

async function readFailedRequests({ hub, captcha, view: { page } }: Scene): Promise<void> {
  const { platform } = hub
  const game = await gameWith(platform, { requests_before_reverify: 100 })
  captcha.misbehave((res) => res.writeHead(500).end())
  const { code, ray_id } = await failureOf(game.find(turnstile(captcha.solve())))
  assert.equal(code, 'CAPTCHA_PROVIDER_FAILED')
  await platform.ctx.recorder.flush()
  const problem = problemOf(page, 'Captchas cannot be checked in prod')
  await problem.getByText('The captcha provider failed for a request in the last ten minutes.').waitFor()
  await press(page, /^Show the failed requests$/)
  await page.waitForURL(/\/rays\?code=CAPTCHA_PROVIDER_FAILED&namespace=/)
  const table = page.getByRole('table', { name: 'Requests' })
  const codes = table.getByText('CAPTCHA_PROVIDER_FAILED', { exact: true })
  await codes.waitFor()
  assert.equal(await table.getByRole('row').count(), 2, 'the head, and the failed request alone')
  await tabTo(page, new RegExp(ray_id!.slice(-8)))
  captcha.misbehave(null)
  platform.advance(PROBLEM_MS)
  await page.goto(hub.url)
  await page.getByRole('table', { name: 'Namespaces' }).waitFor()
  await problem.waitFor({ state: 'detached' })
}

async function checkDisk({ hub, view: { page } }: Scene): Promise<void> {
  const problem = problemOf(page, 'The disk of the runner in local is nearly full')
  await problem.getByText('warning', { exact: true }).waitFor()
  await problem.getByText(/GB are free\. Below [\d.]+ GB, no lobby starts there\./).waitFor()
  await problem.getByRole('link', { name: 'Run the checks' }).click()
  await page.waitForURL(`${hub.url}/platform`)
  await page.getByRole('button', { name: 'Run the checks' }).click()
  const finding = page.getByRole('region', { name: 'Checks' }).getByRole('listitem').filter({ hasText: 'disk' })
  await finding.getByText('warning', { exact: true }).waitFor()
  await finding
    .getByText(/^No lobby starts below \d+ MB \(MUSTER_LOBBY_DISK_FREE_MB_MIN\), and \d+ MB are free/)
    .waitFor()
  await finding.getByText(/^du -xh /).waitFor()
}

async function findBackups(hub: OpenHub): Promise<void> {
  hub.platform.advance(BACKUP_AGE_MS)
  const view = await openView(hub)
  const { page } = view
  await signInAsAdmin(hub, view)
  await problemOf(page, 'There is no backup').getByRole('link', { name: 'Show the backups' }).click()
  await page.waitForURL(`${hub.url}/platform/backups`)
  await page.getByText('There is no backup. A lost disk would lose everything.').waitFor()
  assert.deepEqual(view.faults, [])
  await view.context.close()
}
