// The status page for programs: JSON, and Atom (RFC 4287) with an entry for each update of an incident. Pure.
import { escapeHtml } from '../../text/escape-html.ts'
import type { StatusView } from '../../wire/status-view.ts'
import { dayAt, type Staleness, shownState } from './html.ts'

export function renderJson(view: StatusView, stale: Staleness | null): string {
  const { title, text, player_count, view_ts, measured_ts, day: last_day, parts, incidents } = view
  return `${JSON.stringify({
    ...{ title, text, state: shownState(view, stale), is_fresh: stale === null },
    ...(stale === null ? {} : { stale_since_ts: stale.since_ts }),
    ...{ view_ts, measured_ts, player_count },
    parts: parts.map(({ region, name, state, player_count: players, median_ms, days }) => ({
      ...(region === '' ? {} : { region }),
      ...{ name, state: stale === null ? state : 'unknown', median_ms },
      ...(players === null ? {} : { player_count: players }),
      days: days.map(([measured_minutes, bad_minutes], at) => ({
        day: dayAt(last_day, at - days.length + 1),
        ...{ measured_minutes, bad_minutes },
      })),
    })),
    incidents,
  })}\n`
}

/** Addresses are relative: one feed for all hosts of the page. Ids never change. */
export function renderAtom({ page_id, title, day, incidents }: StatusView): string {
  const entries = incidents
    .flatMap((incident) => incident.updates.map((update) => ({ incident, update })))
    .toSorted((one, other) => other.update.create_ts.localeCompare(one.update.create_ts))
  const updated = entries[0]?.update.create_ts ?? `${day}T00:00:00.000Z`
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>urn:uuid:${page_id}</id>
<title>${escapeHtml(title)}</title>
<updated>${updated}</updated>
<author><name>${escapeHtml(title)}</name></author>
<link rel="self" type="application/atom+xml" href="/status.atom"/>
<link rel="alternate" type="text/html" href="/status"/>
${entries
  .map(
    ({ incident, update }) => `<entry>
<id>urn:uuid:${update.update_id}</id>
<title>${escapeHtml(`${incident.title} (${update.state})`)}</title>
<updated>${update.create_ts}</updated>
<link rel="alternate" type="text/html" href="/status#${incident.incident_id}"/>
<content type="text">${escapeHtml(update.text)}</content>
</entry>
`,
  )
  .join('')}</feed>
`
}
