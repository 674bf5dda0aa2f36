import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { startPlatform } from '../support/platform.ts'
import { openBrowser } from './browser.ts'

const PAGES = [
  '/docs/api',
  '/docs/api/lobbies',
  '/docs/api/games.versions',
  '/docs/errors',
  '/docs/errors/MATCHMAKER_LOBBY_FULL',
]
const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
] as const
/** Colours and widths are independent of each other, so two looks show both of each. */
const LOOKS = [
  { colorScheme: 'light', viewport: SIZES[0] },
  { colorScheme: 'dark', viewport: SIZES[1] },
] as const
const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))

type Violation = { id: string; nodes: { html: string; failureSummary: string }[] }
/** What a page of the reference has in it, for functions that run there. */
type PageWindow = {
  axe: { run: (options: object) => Promise<{ violations: Violation[] }> }
  document: {
    documentElement: { scrollWidth: number; clientWidth: number }
    activeElement: { id: string } | null
  }
  getComputedStyle: (element: object) => { scrollBehavior: string }
}

test('the reference in a browser: whole without a script, searched by the keyboard, open to everybody', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const platform = await startPlatform(t, { roles: 'api,edge' })

  /** A page, with a list of all that is asked for and of all that goes wrong. */
  async function open(options: BrowserContextOptions): Promise<{ page: Page; told: string[] }> {
    const context = await browser!.newContext({ ...options, reducedMotion: 'reduce' })
    const page = await context.newPage()
    const told: string[] = []
    page.on('console', (message) => told.push(`${message.type()}: ${message.text()}`))
    page.on('pageerror', (error) => told.push(error.message))
    page.on('request', (request) => {
      const is_own = request.isNavigationRequest() || request.url().startsWith('data:')
      if (!is_own) told.push(`asked for ${request.url()}`)
    })
    return { page, told }
  }

  for (const { colorScheme, viewport } of LOOKS) {
    const look = `${colorScheme}, ${viewport.width} wide`
    await t.test(`${look}: nothing for axe to find, and nothing to scroll sideways`, async () => {
      // axe is put in from outside, which the pages' own policy forbids. That they keep it is checked below.
      const { page } = await open({ colorScheme, viewport, bypassCSP: true })
      for (const path of PAGES) {
        await page.goto(`${platform.edge_url}${path}`)
        assert.ok(await page.evaluate(isNotWider), `${path} is wider than the window`)
        assert.deepEqual(await violationsOf(page), [], path)
      }
      await page.context().close()
    })
  }

  await t.test('it keeps its own policy and asks for nothing', async () => {
    const { page, told } = await open({ viewport: SIZES[0] })
    for (const path of PAGES) await page.goto(`${platform.edge_url}${path}`)
    assert.deepEqual(told, [])
    await page.context().close()
  })

  await t.test('the keyboard alone finds an operation', async () => {
    for (const viewport of SIZES) {
      const { page, told } = await open({ viewport })
      await page.goto(`${platform.edge_url}/docs/api`)
      await page.keyboard.press('/')
      await page.keyboard.type('create cdn site')
      assert.equal(await page.locator('#found li:visible').count(), 1)
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/docs/api/games.cdn#games.cdn.createGameCdnSite')
      assert.ok(await page.locator('article[id="games.cdn.createGameCdnSite"] h2').isVisible())
      await page.keyboard.press('/')
      await page.keyboard.type('nothing is called so')
      assert.equal(await page.locator('#found li').count(), 0)
      assert.equal(await page.locator('.side nav').isVisible(), false)
      assert.match((await page.locator('#search-result').textContent()) ?? '', /Nothing/)
      await page.keyboard.press('Escape')
      assert.equal(await page.locator('#search').inputValue(), '')
      assert.deepEqual(told, [])
      await page.context().close()
    }
  })

  await t.test('the search shows exact names first, then beginnings of names, then words', async () => {
    const { page } = await open({ viewport: SIZES[0] })
    await page.goto(`${platform.edge_url}/docs/errors`)
    const firstOf = async (query: string, count: number) => {
      await page.locator('#search').fill(query)
      return (await page.locator('#found a').allTextContents()).slice(0, count).map((text) => text.split(' ')[0])
    }
    assert.deepEqual(await firstOf('find', 1), ['lobbies.find'])
    assert.deepEqual(await firstOf('lobbies.list', 1), ['lobbies.list'])
    assert.deepEqual(await firstOf('GET', 2), ['devices.links.get', 'overview.get'])
    assert.deepEqual(await firstOf('/kv/entries/list', 1), ['kv.list'])
    assert.deepEqual(await firstOf('createGame', 1), ['games.createGame'])
    // The word is in the summary of some, in the name of others, and the name of one.
    assert.deepEqual(await firstOf('ready', 1), ['lobbies.ready'])
    await page.locator('#search').fill('player')
    const names = await page.locator('#found a').evaluateAll(namesOf)
    const is_named = names.map((name) => /player/i.test(name))
    assert.ok(is_named.includes(false), names.join())
    assert.deepEqual(
      is_named,
      is_named.toSorted((a, b) => Number(b) - Number(a)),
      names.join(),
    )
    await page.context().close()
  })

  await t.test('addresses of the single page lead to the operation, and no jump is animated', async () => {
    const context = await browser.newContext({ viewport: SIZES[0], reducedMotion: 'no-preference' })
    const page = await context.newPage()
    await page.goto(`${platform.edge_url}/docs/api#lobbies.find`)
    await page.waitForURL('**/docs/api/lobbies#lobbies.find')
    assert.ok(await page.locator('article[id="lobbies.find"] h2').isVisible())
    assert.equal(await page.evaluate(scrollBehavior), 'auto')
    await page.goBack()
    assert.equal(page.url(), 'about:blank', 'the address that led on is not in the history')
    await context.close()
  })

  await t.test('the page of a section opens at its top, with the section in view in the list', async () => {
    const { page } = await open({ viewport: SIZES[0] })
    await page.goto(`${platform.edge_url}/docs/api/lobbies`)
    assert.equal(await page.evaluate('scrollY'), 0)
    assert.ok(((await page.evaluate("document.querySelector('.side nav').scrollTop")) as number) > 0)
    await page.context().close()
  })

  await t.test('without a script everything is there but the search', async () => {
    const { page } = await open({ javaScriptEnabled: false, viewport: SIZES[1] })
    await page.goto(`${platform.edge_url}/docs/api#lobbies.find`)
    await page.locator('ul.operations li[id="lobbies.find"] a').click()
    assert.ok(await page.locator('article[id="lobbies.find"] h2').isVisible())
    assert.equal(await page.locator('#search').isVisible(), false)
    assert.equal(await page.locator('.side').isVisible(), false, 'the list lies behind its button')
    await page.locator('.bar label').click()
    await page.locator('.side a', { hasText: 'getRegionTiers' }).click()
    assert.equal(new URL(page.url()).hash, '#tiers.getRegionTiers')
    await page.goto(`${platform.edge_url}/docs/api/games.versions`)
    const config = page.locator('article[id="games.versions.createGameVersion"] details').last()
    const was_open = await config.evaluate((element) => (element as unknown as { open: boolean }).open)
    await config.locator('> summary').click()
    assert.notEqual(await config.evaluate((element) => (element as unknown as { open: boolean }).open), was_open)
    await page.context().close()
  })
})

function isNotWider(): boolean {
  const { documentElement } = (globalThis as unknown as PageWindow).document
  return documentElement.scrollWidth <= documentElement.clientWidth
}

/** An operation's names are its id and its path. */
function namesOf(links: { dataset: { id?: string; path?: string } }[]): string[] {
  return links.map(({ dataset }) => `${dataset.id} ${dataset.path}`)
}

function scrollBehavior(): string {
  const { document, getComputedStyle } = globalThis as unknown as PageWindow
  return getComputedStyle(document.documentElement).scrollBehavior
}

async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'))
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as PageWindow
    return (await axe.run({ resultTypes: ['violations'] })).violations
  })
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
}
