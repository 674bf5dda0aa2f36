// Every page of the hub, as an administrator, a viewer and a stranger see it.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Page } from 'playwright-core'
import { cutTables, isTooWide, violationsOf } from './axe.ts'
import { useSession as giveSession, openView, PHONE, signInAsAdmin, WIDE } from './steps.ts'
import { MARK, MARKED, marked, openSweptHub, pagesOf, type SweptHub, type SweptPage, settle } from './sweep-steps.ts'

/** Of the rules, only these depend on the theme. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block']
const LOOKS = [
  { colorScheme: 'light', viewport: WIDE, rules: undefined },
  { colorScheme: 'light', viewport: PHONE, rules: undefined },
  { colorScheme: 'dark', viewport: PHONE, rules: COLOUR_RULES },
  { colorScheme: 'dark', viewport: WIDE, rules: COLOUR_RULES },
] as const
/** What a viewer may press: buttons that change nothing, or only what the viewer owns. */
const VIEWER_BUTTONS = [
  ...[
    /: (Copy|Copy as …|Copy the config|Explain as …|Timings as …)$/,
    /: [0-9a-f]{8}$/,
    /: (Load more|Table|CSV|CSV: .*)$/,
  ],
  ...[
    /^\/: New group$/,
    /^\/account: /,
    /^\/invites\/\$code: Join the group$/,
    /^\/devices\/link\/\$device_link_token: Refuse$/,
  ],
  ...[/\/lobbies: \d+ (starting|ready|idle|closed|stalled|outdated)$/, /\/kv: (Apply|top|<i data-m>key)$/],
  /\/ratings: Apply$/,
  /^\/groups\/\$group_id: Leave the group$/,
]

test('every page of the hub', async (t) => {
  const hub = await openSweptHub(t)
  if (hub === null) return
  const pages = pagesOf(hub)
  await t.test('axe finds nothing, no page and no table scrolls sideways, and markup in names stays text', () =>
    sweep(hub, pages),
  )
  await t.test('a viewer changes nothing', () => sweepAsViewer(hub, pages))
  await t.test('a stranger learns nothing about the groups of others', () => sweepAsStranger(hub, pages))
})

async function sweep(hub: SweptHub, pages: readonly SweptPage[]): Promise<void> {
  const view = await openView(hub, { bypassCSP: true, reducedMotion: 'reduce' })
  const { page } = view
  const found: string[] = []
  await page.goto(`${hub.url}/sign-in`)
  await page.getByLabel('E-mail').or(page.getByLabel('Access token')).first().waitFor()
  found.push(...(await faultsOfLooks(page, '/sign-in')))
  await signInAsAdmin(hub, view)
  const shown = new Set<string>()
  for (const { pattern, path, shown: text } of pages) {
    await page.setViewportSize(WIDE)
    await page.goto(hub.url + path)
    await settle(page, text)
    found.push(...(await faultsOfLooks(page, pattern)))
    for (const what of await markedIn(page)) shown.add(what)
  }
  assert.deepEqual(found.concat(view.faults), [])
  assert.deepEqual(
    MARKED.filter((what) => !shown.has(what)),
    [],
    'these texts are shown by no page',
  )
  await view.context.close()
}

/** What is wrong with the open page, in both themes and both widths. */
async function faultsOfLooks(page: Page, pattern: string): Promise<string[]> {
  const found: string[] = []
  if ((await page.locator('h1').count()) !== 1) found.push(`${pattern} has ${await page.locator('h1').count()} titles`)
  if (!/^.+ · Muster$/s.test(await page.title())) found.push(`${pattern} is called ${await page.title()}`)
  if ((await page.locator(`[${MARK}]`).count()) !== 0) found.push(`${pattern} takes text for markup`)
  for (const { colorScheme, viewport, rules } of LOOKS) {
    const look = `${pattern}, ${colorScheme}, ${viewport.width} wide`
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(viewport)
    found.push(...(await violationsOf(page, rules)).map((violation) => `${look}: ${violation}`))
    if (await isTooWide(page)) found.push(`${look}: is wider than the window`)
    for (const table of await cutTables(page)) found.push(`${look}: the table ${table} is cut`)
  }
  return found
}

async function markedIn(page: Page): Promise<string[]> {
  const text = (await page.locator('body').textContent()) ?? ''
  return MARKED.filter((what) => text.includes(marked(what)))
}

async function sweepAsViewer(hub: SweptHub, pages: readonly SweptPage[]): Promise<void> {
  const view = await openView(hub)
  const { page } = view
  const sent: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (request.method() !== 'GET' && pathname !== '/auth/tokens/identity') sent.push(`${request.method()} ${pathname}`)
  })
  await giveSession(hub, view, hub.viewer.cookie)
  const buttons: string[] = []
  for (const { pattern, path } of pages) {
    await page.goto(hub.url + path)
    await settle(page)
    const names = await page
      .locator('main')
      .getByRole('button')
      .filter({ visible: true })
      .evaluateAll((elements) =>
        elements
          .filter((element) => element.closest('th') === null)
          .map((element) => element.getAttribute('aria-label') ?? element.textContent ?? ''),
      )
    buttons.push(...names.map((name) => `${pattern}: ${name}`))
    if ((await page.locator('main input[type=file]').count()) > 0) buttons.push(`${pattern}: a file is asked for`)
  }
  assert.deepEqual(
    buttons.filter((name) => !VIEWER_BUTTONS.some((allowed) => allowed.test(name))),
    [],
  )
  assert.deepEqual(sent.concat(view.faults), [])
  await view.context.close()
}

async function sweepAsStranger(hub: SweptHub, pages: readonly SweptPage[]): Promise<void> {
  const view = await openView(hub)
  const { page } = view
  await giveSession(hub, view, hub.stranger.cookie)
  const found: string[] = []
  for (const { pattern, path } of pages) {
    // Who has the code of an invite may read its group.
    if (pattern.includes('$code')) continue
    await page.goto(hub.url + path)
    if (/^\/(games|groups)/.test(pattern)) await page.getByRole('alert').waitFor()
    else await settle(page)
    if ((await markedIn(page)).length > 0) found.push(`${pattern} shows a name`)
    const html = await page.content()
    for (const [name, id] of Object.entries(hub.ids)) {
      if (!path.includes(id) && html.includes(id)) found.push(`${pattern} has the ${name}`)
    }
  }
  assert.deepEqual(found.concat(view.faults), [])
  await view.context.close()
}
