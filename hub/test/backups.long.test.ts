// The page of backups: what the schedule does, and a restore into an empty folder by keyboard.
import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import {
  createGame,
  createGroup,
  deleteGame,
  getGameById,
  listStoredBackups,
  runAdminBackup,
} from '@musterhost/contract'
import { newBackupKey, verify } from '../../server/src/backup/command.ts'
import { until } from '../../server/test/support/until.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, type View } from './steps.ts'

type Scene = { hub: OpenHub; view: View; folder: string }

async function scratchFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-hub-backups-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  // PostgreSQL of a restored platform runs as another user.
  await chmod(folder, 0o711)
  return folder
}

test('the page of backups', async (t) => {
  const folder = await scratchFolder(t)
  const env = { MUSTER_BACKUP_TO: join(folder, 'repository'), MUSTER_BACKUP_KEY: await newBackupKey() }
  const hub = await openHub(t, { roles: 'api,edge', env })
  if (hub === null) return
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  const scene: Scene = { hub, view, folder }
  await t.test('it shows the last success, the next time and the encryption, and backs up at once', () => show(scene))
  await t.test('by keyboard, a backup is restored into an empty folder, whose platform is sound', () => restore(scene))
  await t.test('by keyboard, one game of a backup is restored into the platform', () => restoreOne(scene))
  await t.test('axe finds nothing in both themes, and nothing scrolls sideways on a phone', () => examine(scene))
  assert.deepEqual(view.faults, [])
  await view.context.close()
})

async function show({ hub, view: { page }, folder }: Scene): Promise<void> {
  await page.goto(`${hub.url}/platform/backups`)
  const section = page.getByRole('region', { name: 'Schedule' })
  await section.getByText(join(folder, 'repository')).waitFor()
  await section.getByText('yes', { exact: true }).waitFor()
  await section.getByText('7d 4w 12m').waitFor()
  await section.getByRole('button', { name: 'Back up now' }).click()
  await page.getByText('A backup begins.').waitFor()
  await page.getByRole('table', { name: 'Backups', exact: true }).getByText('whole').first().waitFor()
  await section.getByText('none yet').waitFor({ state: 'detached' })
}

async function restore({ view: { page }, folder }: Scene): Promise<void> {
  await press(page, /^List the backups$/)
  await page.getByRole('table', { name: 'Backups of the repository' }).waitFor()
  await press(page, /^Restore 20\d\d-/)
  await dialogOpens(page)
  await tabTo(page, /^Folder/)
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type('not-absolute')
  await page.keyboard.press('Enter')
  await page.getByText('The folder must be an absolute path.').waitFor()
  const restored = join(folder, 'restored')
  await tabTo(page, /^Folder/)
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type(restored)
  await page.keyboard.press('Enter')
  await dialogCloses(page)
  const outcomes = page.getByRole('table', { name: 'Restores' })
  await outcomes.getByText(`MUSTER_DATA=${restored} muster start`).waitFor()
  const { is_good, lines } = await verify({ MUSTER_DATA: restored }, null)
  assert.ok(is_good, lines.join('\n'))
}

async function restoreOne({ hub, view: { page } }: Scene): Promise<void> {
  const { client } = hub.platform
  const { group_id } = await client.call(createGroup, { body: { display_name: 'Studio' } })
  const body = { display_name: 'Lost', name_id: 'lost', developer_group_id: group_id }
  const { game_id } = await client.call(createGame, { body })
  const stored = async () => (await client.call(listStoredBackups, {})).backups.map(({ name }) => name)
  const [former] = await stored()
  await client.call(runAdminBackup, {})
  // The rule keeps one backup of a day, and removes the others after the new one is recorded.
  await until('the next backup to be the only one', async () => {
    const names = await stored()
    return names.length === 1 && names[0] !== former
  })
  await page.reload()
  await client.call(deleteGame, { params: { game_id } })
  await press(page, /^List the backups$/)
  await page.getByRole('table', { name: 'Backups of the repository' }).waitFor()
  await press(page, /^Restore one game of 20\d\d-/)
  await dialogOpens(page)
  await tabTo(page, /^Game/)
  await page.keyboard.type('lost')
  await page.keyboard.press('Enter')
  await dialogCloses(page)
  await page.getByRole('table', { name: 'Restores' }).getByText('The game lost is here.').waitFor()
  const { game } = await client.call(getGameById, { params: { game_id } })
  assert.equal(game.display_name, 'Lost')
}

async function examine({ hub }: Scene): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const view = await openView(hub, { viewport: PHONE, colorScheme, bypassCSP: true })
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/platform/backups`)
    await page.getByRole('button', { name: 'List the backups' }).click()
    await page.getByRole('table', { name: 'Backups of the repository' }).waitFor()
    assert.deepEqual(await violationsOf(page), [])
    assert.equal(await isTooWide(page), false)
    await page
      .getByRole('button', { name: /^Restore 20/ })
      .first()
      .click()
    await dialogOpens(page)
    assert.deepEqual(await violationsOf(page), [])
    await page.keyboard.press('Escape')
    await view.context.close()
  }
}
