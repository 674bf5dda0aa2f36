// What the first chart of a page writes on its canvas: the labels of its axes.
import type { Page } from 'playwright-core'

export type CanvasText = { text: string; left: number; width: number }

/** Call it before the page is opened. */
export async function keepCanvasTexts(page: Page): Promise<void> {
  await page.addInitScript(recordCanvasTexts)
}

export function canvasTexts(page: Page): Promise<CanvasText[]> {
  return page.evaluate(() => (globalThis as unknown as { canvas_texts: CanvasText[] }).canvas_texts)
}

/** Runs in the page. */
function recordCanvasTexts(): void {
  const texts: CanvasText[] = []
  const { prototype } = CanvasRenderingContext2D
  const draw = prototype.fillText
  prototype.fillText = function (text, left, top, ...rest) {
    const width = this.measureText(text).width
    if (this.canvas === document.querySelector('.u-wrap canvas')) texts.push({ text, left, width })
    draw.call(this, text, left, top, ...rest)
  }
  Object.assign(globalThis, { canvas_texts: texts })
}
