// The status page as HTML: pure, without JavaScript, and with one style sheet inside. What people wrote is shown as plain text.
import { createHash } from 'node:crypto'
import { escapeHtml } from '../../text/escape-html.ts'
import type { ShownIncident, StatusDay, StatusPart, StatusState, StatusView } from '../../wire/status-view.ts'

/** Why a view is not of now. `away`: this edge cannot reach the database. `late`: nothing has measured since. */
export type Staleness = { kind: 'away' | 'late'; since_ts: string }

/** Share of the measured minutes of a day that were bad, from which on its bar shows an outage. */
const BAD_SHARE_OUTAGE = 0.05
/** Days that are listed below the bars of a part: the last with bad minutes. */
const LISTED_DAYS_MAX = 30
const BAR = { step: 4, width: 3, height: 30, low: 8 } as const
const DAY_MS = 86_400_000

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2024;--soft:#53595f;--page:#fff;--line:#d5d9dd;--good:#18794e;--warn:#ad5700;--bad:#c62a2f;--none:#8b939a}
@media(prefers-color-scheme:dark){:root{--ink:#eceef0;--soft:#a5acb3;--page:#111416;--line:#363b40;--good:#4cc38a;--warn:#f1a10d;--bad:#ff8589;--none:#757d84}}
*{box-sizing:border-box}
body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
main,footer{max-width:46rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;margin:1rem 0;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0;overflow-wrap:anywhere}
p{margin:.25rem 0}.soft,footer{color:var(--soft);font-size:.875rem}.text{white-space:pre-line;overflow-wrap:anywhere}
.now{border:2px solid;border-radius:.5rem;padding:.75rem 1rem;font-weight:600;font-size:1.1rem}
.operational{color:var(--good)}.degraded{color:var(--warn)}.outage{color:var(--bad)}.unknown{color:var(--soft)}
.part{border-top:1px solid var(--line);padding:.75rem 0}.row{display:flex;flex-wrap:wrap;justify-content:space-between;gap:.25rem 1rem}.row b{font-weight:600}
svg{display:block;width:100%;height:2rem;margin:.5rem 0}.g{fill:var(--good)}.w{fill:var(--warn)}.b{fill:var(--bad)}.n{fill:var(--none)}
article{border-top:1px solid var(--line);padding:.75rem 0}ol,ul{margin:.5rem 0;padding-left:1.25rem}
a{color:inherit}a:focus-visible,summary:focus-visible{outline:3px solid;outline-offset:2px}summary{cursor:pointer;padding:.25rem 0}
`
/** The only style of the page, and nothing else is loaded. */
export const HTML_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const STATES: Readonly<Record<StatusState, string>> = {
  operational: 'Players get into games',
  degraded: 'There are problems',
  outage: 'There is an outage',
  unknown: 'Not measured now',
}
const PART_STATES: Readonly<Record<StatusState, string>> = {
  operational: 'Operational',
  degraded: 'Problems',
  outage: 'Outage',
  unknown: 'Not measured',
}
const IMPACTS: Readonly<Record<ShownIncident['impact'], string>> = {
  none: 'No impact',
  minor: 'Minor impact',
  major: 'Major impact',
}

/** What readers see as the state of now: an edge without the database cannot give players games. */
export function shownState({ state }: Pick<StatusView, 'state'>, stale: Staleness | null): StatusState {
  if (stale === null) return state
  return stale.kind === 'away' ? 'outage' : 'unknown'
}

export function renderHtml(view: StatusView, stale: Staleness | null): string {
  const { title, text, player_count, measured_ts, parts, incidents } = view
  const open = incidents.filter(({ resolve_ts }) => resolve_ts === null)
  const over = incidents.filter(({ resolve_ts }) => resolve_ts !== null)
  const state = shownState(view, stale)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="alternate" type="application/atom+xml" title="Incidents" href="/status.atom">
<link rel="alternate" type="application/json" href="/status.json">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${text === '' ? '' : `<p class="text">${escapeHtml(text)}</p>\n`}<p class="now ${state}">${STATES[state]}</p>
${staleLine(stale)}<p class="soft">${player_count === 1 ? '1 player' : `${number(player_count)} players`} ${stale === null ? 'now' : 'then'}. ${measured_ts === null ? 'Nothing was measured yet.' : `State of ${time(measured_ts)}.`}</p>
${open.length === 0 ? '' : `<section aria-labelledby="open"><h2 id="open">Open incidents</h2>\n${open.map(incident).join('')}</section>\n`}<section aria-labelledby="parts"><h2 id="parts">The last 90 days</h2>
${parts.map((part) => partOf(part, view.day, stale)).join('')}</section>
<section aria-labelledby="past"><h2 id="past">Past incidents</h2>
${over.length === 0 ? '<p class="soft">There was none in the last 90 days.</p>\n' : over.map(incident).join('')}</section>
</main>
<footer><p>All times are UTC. A bar is a day: a minute of it is bad when most players who looked for a game got none, or the platform did not respond. Also as <a href="/status.json">JSON</a> and <a href="/status.atom">Atom</a>.</p></footer>
</body>
</html>
`
}

function staleLine(stale: Staleness | null): string {
  if (stale === null) return ''
  const why =
    stale.kind === 'away'
      ? 'The platform is not reachable from this server since'
      : 'No new measurement has arrived since'
  return `<p role="status"><strong>${why} ${time(stale.since_ts)}.</strong> Below is what was known then.</p>\n`
}

function partOf(
  { name, region, state, days, player_count, median_ms }: StatusPart,
  day: string,
  stale: Staleness | null,
) {
  const shown = stale === null ? state : 'unknown'
  const facts = [
    ...(player_count === null ? [] : [player_count === 1 ? '1 player' : `${number(player_count)} players`]),
    ...(median_ms === null
      ? []
      : [`${region === '' ? 'A seat takes' : 'A server starts in'} ${duration(median_ms)} (median of an hour)`]),
  ]
  const summary = summaryOf(days)
  return `<div class="part"><div class="row"><h3>${escapeHtml(name)}</h3><b class="${shown}">${PART_STATES[shown]}</b></div>
${facts.length === 0 ? '' : `<p class="soft">${facts.join('. ')}.</p>\n`}<svg viewBox="0 0 ${days.length * BAR.step} ${BAR.height}" preserveAspectRatio="none" role="img" aria-label="${escapeHtml(`${name}: ${summary}`)}">${bars(days, day)}</svg>
<p class="soft">${summary}</p>
${badDays(days, day)}</div>
`
}

export type DayKind = 'g' | 'w' | 'b' | 'n'

/** A day without a measured minute has no data, and is not good. */
export function kindOfDay([measured_count, bad_count]: StatusDay): DayKind {
  if (measured_count === 0) return 'n'
  if (bad_count === 0) return 'g'
  return bad_count / measured_count >= BAD_SHARE_OUTAGE ? 'b' : 'w'
}

function bars(days: readonly StatusDay[], day: string): string {
  return days
    .map((one, at) => {
      const kind = kindOfDay(one)
      // Not by colour alone: a day without data is low, and one with bad minutes has a gap at its top.
      const y = kind === 'n' ? BAR.height - BAR.low : kind === 'g' ? 0 : BAR.low
      const title = `${dayAt(day, at - days.length + 1)}: ${dayText(one)}`
      return `<rect class="${kind}" x="${at * BAR.step}" y="${y}" width="${BAR.width}" height="${BAR.height - y}"><title>${title}</title></rect>`
    })
    .join('')
}

function dayText([measured_count, bad_count]: StatusDay): string {
  if (measured_count === 0) return 'no data'
  return `${number(bad_count)} of ${number(measured_count)} measured minutes were bad`
}

function summaryOf(days: readonly StatusDay[]): string {
  const measured = days.reduce((sum, [count]) => sum + count, 0)
  const bad = days.reduce((sum, [, count]) => sum + count, 0)
  const empty_count = days.filter(([count]) => count === 0).length
  if (measured === 0) return 'No data yet.'
  // Rounded down: a single bad minute is never 100 %.
  const share = Math.floor((1 - bad / measured) * 100_000) / 1_000
  const rest = empty_count === 0 ? '' : ` No data for ${empty_count} of ${days.length} days.`
  return `${share} % of ${number(measured)} measured minutes were good, ${number(bad)} were bad.${rest}`
}

function badDays(days: readonly StatusDay[], day: string): string {
  const bad = days
    .map((one, at) => ({ one, at }))
    .filter(({ one }) => one[1] > 0)
    .slice(-LISTED_DAYS_MAX)
    .toReversed()
  if (bad.length === 0) return ''
  const lines = bad.map(({ one, at }) => `<li>${dayAt(day, at - days.length + 1)}: ${dayText(one)}</li>`)
  return `<details><summary>Days with bad minutes</summary><ul>${lines.join('')}</ul></details>\n`
}

function incident({ incident_id, title, state, impact, updates }: ShownIncident): string {
  const lines = updates.map(
    (update) =>
      `<li><p class="soft"><b>${escapeHtml(capital(update.state))}</b>, ${time(update.create_ts)}</p><p class="text">${escapeHtml(update.text)}</p></li>`,
  )
  return `<article id="${incident_id}"><h3>${escapeHtml(title)}</h3><p class="soft">${escapeHtml(capital(state))}. ${IMPACTS[impact]}.</p><ul>${lines.join('')}</ul></article>\n`
}

/** The day so many days after `day`. */
export function dayAt(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 'yyyy-mm-dd'.length)
}

function time(ts: string): string {
  return `<time datetime="${ts}">${ts.slice(0, 'yyyy-mm-dd'.length)} ${ts.slice('yyyy-mm-ddT'.length, 'yyyy-mm-ddThh:mm'.length)} UTC</time>`
}

function duration(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`
}

function number(count: number): string {
  return count.toLocaleString('en-US')
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
