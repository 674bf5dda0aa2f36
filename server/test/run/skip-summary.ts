// What the tests of a run need that this machine does not have, for the end of `npm test`:
//
//     214 tests need: bubblewrap (61), Chromium (48), root (7)
//     sudo apt-get install --no-install-recommends bubblewrap chromium-headless-shell
import { packagesFor, wordsOf } from './optional-programs.ts'

/** `reasons`: one for each test that was skipped. */
export function summariseSkips(reasons: readonly string[]): string[] {
  if (reasons.length === 0) return []
  const counts = new Map<string, number>()
  for (const word of reasons.flatMap(wordsOf)) counts.set(word, (counts.get(word) ?? 0) + 1)
  const sorted = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  const needs = sorted.map(([word, count]) => `${word} (${count})`).join(', ')
  const packages = packagesFor(counts.keys()).sort()
  return [
    `${reasons.length === 1 ? '1 test needs' : `${reasons.length} tests need`}: ${needs}`,
    ...(packages.length === 0 ? [] : [`sudo apt-get install --no-install-recommends ${packages.join(' ')}`]),
  ]
}
