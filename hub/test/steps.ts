// The hub in tests: on a real platform, in a real Chromium. `npm test` has built it.
import type { TestContext } from 'node:test'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { mainUrl } from '../../server/src/config/addresses.ts'
import { openBrowser } from '../../server/test/end-to-end/browser.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../../server/test/support/platform.ts'
import { WAIT_MS_MAX } from '../../server/test/support/until.ts'

export const WIDE = { width: 1280, height: 800 }
export const PHONE = { width: 390, height: 844 }

export type OpenHub = {
  platform: Platform
  browser: Browser
  /** The address of the hub, which alone may use its session. */
  url: string
}

/** Null without Chromium: then the test has been skipped and should return. */
export async function openHub(t: TestContext, options: PlatformOptions = {}): Promise<OpenHub | null> {
  const browser = await openBrowser(t)
  if (browser === null) return null
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge', ...options })
  return { platform, browser, url: mainUrl(platform.ctx.config) }
}

export type View = {
  page: Page
  context: BrowserContext
  /** Whatever a page must not do: errors, refused resources, requests to another origin. Tests expect it to be empty. */
  faults: string[]
}

/** A browser of its own. It is not signed in. */
export async function openView(hub: OpenHub, options: BrowserContextOptions = {}): Promise<View> {
  const context = await hub.browser.newContext({ viewport: WIDE, ...options })
  context.setDefaultTimeout(WAIT_MS_MAX)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !isRefusal(message.text())) faults.push(message.text())
  })
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (/^(https?|wss?):$/.test(protocol) && origin !== new URL(hub.url).origin)
      faults.push(`asked for ${request.url()}`)
  })
  return { page, context, faults }
}

/** Chromium logs every response with an error status, which pages show in their own way. */
function isRefusal(text: string): boolean {
  return text.startsWith('Failed to load resource: the server responded with a status of 4')
}

/** Signs in as the operator, through the form. */
export async function signInAsAdmin(hub: OpenHub, { page }: View): Promise<void> {
  await page.goto(`${hub.url}/sign-in`)
  const other = page.getByRole('button', { name: "Sign in with the operator's access token" })
  await other.click()
  await page.getByLabel('Access token').fill(hub.platform.token)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
}

/** Gives a view the session of a person who has signed in elsewhere. `cookie`: name=value. */
export async function useSession(hub: OpenHub, { context }: View, cookie: string): Promise<void> {
  const at = cookie.indexOf('=')
  await context.addCookies([
    { name: cookie.slice(0, at), value: cookie.slice(at + 1), url: hub.url, httpOnly: true, sameSite: 'Lax' },
  ])
}

/** A problem of the home page. */
export function problemOf(page: Page, title: string): Locator {
  return page.getByRole('listitem').filter({ hasText: title })
}

/** A main figure of a page, with this value. */
export function figureOf(page: Page, name: string, value: string): Locator {
  const figure = page.locator('dl > div').filter({ has: page.getByRole('term').getByText(name, { exact: true }) })
  return figure.getByText(value, { exact: true })
}
