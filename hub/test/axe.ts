// The accessibility checks of axe-core in an open page. axe is put in from outside: the tests that use it bypass the policy.
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))

type Violation = { id: string; nodes: { html: string; failureSummary: string }[] }
type PageWindow = { document: { documentElement: { scrollWidth: number; clientWidth: number } } }
type AxeWindow = { axe: { run: (options: object) => Promise<{ violations: Violation[] }> } }

/** One line for each element that breaks a rule. `rules`: only these are checked. */
export async function violationsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  const is_there = await page.evaluate(() => 'axe' in globalThis)
  if (!is_there) await page.addScriptTag({ path: AXE })
  const violations = await page.evaluate(
    async (runOnly) =>
      (await (globalThis as unknown as AxeWindow).axe.run({ resultTypes: ['violations'], ...runOnly })).violations,
    rules === undefined ? {} : { runOnly: [...rules] },
  )
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`))
}

/** Whether the page is wider than the window, so that a phone would scroll sideways. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = (globalThis as unknown as PageWindow).document.documentElement
    return scrollWidth > clientWidth
  })
}

/** The tables that scroll sideways within their frame. */
export function cutTables(page: Page): Promise<string[]> {
  return page
    .locator('main [role=group]:has(> table)')
    .evaluateAll((frames) =>
      frames.flatMap((frame) =>
        frame.scrollWidth > frame.clientWidth ? [frame.getAttribute('aria-label') ?? ''] : [],
      ),
    )
}
