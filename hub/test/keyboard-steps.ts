// The keyboard as a person uses it: Tab until the element has the focus, and a key for it.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { until } from '../../server/test/support/until.ts'

/** More elements than the pages of the tests have before the one that is looked for. */
const TABS_MAX = 120

type Focus = { name: string; is_lost: boolean; is_visible: boolean }

export function focusOf(page: Page): Promise<Focus> {
  return page.evaluate(() => {
    const element = document.activeElement ?? document.body
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    const label = (element as HTMLInputElement).labels?.[0]?.textContent
    return {
      name: (element.getAttribute('aria-label') ?? label ?? element.textContent ?? '').trim(),
      is_lost: element === document.body,
      is_visible: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0,
    }
  })
}

/** Presses Tab until the element of this name has the focus. What has the focus on the way is always visible. */
export async function tabTo(page: Page, name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  const passed: string[] = []
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    const focus = await focusOf(page)
    if (name.test(focus.name) && !focus.is_lost) return
    passed.push(focus.name.slice(0, 40))
    await page.keyboard.press(key)
    const next = await focusOf(page)
    assert.ok(next.is_lost || next.is_visible, `the focus is not visible: ${next.name}`)
  }
  assert.fail(`${key} does not lead to ${name}, but to ${passed.join(', ')}.`)
}

export async function press(page: Page, name: RegExp, key = 'Enter'): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press(key)
}

/** The dialog is open and has the focus. Its code is loaded when the first one opens, so a Tab before that is the page's. */
export async function dialogOpens(page: Page): Promise<void> {
  await page.getByRole('dialog').waitFor()
  await until('the focus to be in the dialog', () =>
    page.evaluate(() => document.activeElement?.closest('[role=dialog]') != null),
  )
}

/** The dialog is gone, and the focus is in the page. */
export async function dialogCloses(page: Page): Promise<void> {
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await until('the focus to be in the page', async () => !(await focusOf(page)).is_lost)
}
