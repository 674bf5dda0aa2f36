// Who waits for a match by rules, now: numbers by game mode, and what the oldest requests wait for.
import type { WaitingGameMode, WaitingRequest } from '@musterhost/contract'
import { refusingRuleText } from '@musterhost/contract/explanation-words'
import { useState } from 'react'
import { listWaitingRequests } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { SelectField } from '../../parts/fields.tsx'
import { count, duration } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { Age } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { useNamespace } from '../namespace/namespace.ts'

const EVERY_MS = 3_000
/** The same where no game mode has rules: a deploy may add some. */
const WITHOUT_RULES_EVERY_MS = 30_000

/** Nothing, where no game mode has rules. */
export function WaitingNow() {
  const { params } = useNamespace()
  const [{ waiting }, change] = useUrlState(['waiting'])
  const [has_rules, setHasRules] = useState(false)
  const input = { params, query: waiting === '' ? {} : { game_mode: waiting } }
  const { data } = useCall(listWaitingRequests, input, { every_ms: has_rules ? EVERY_MS : WITHOUT_RULES_EVERY_MS })
  if (data === undefined) return null
  const { game_modes, requests } = data
  if (has_rules !== game_modes.length > 0) setHasRules(game_modes.length > 0)
  if (game_modes.length === 0) return null
  const shown = game_modes.filter(({ game_mode }) => waiting === '' || game_mode === waiting)
  const total = shown.reduce((sum, mode) => sum + mode.requests, 0)
  return (
    <Section
      title="Waiting for a match, now"
      lead="Requests in game modes with rules. Each waits for players who fit, or for its limits to widen. Missing are the players until its match is full."
      actions={
        <>
          <CopyAs operation={listWaitingRequests} input={input} />
          {game_modes.length > 1 || waiting !== '' ? (
            <SelectField
              label="Game mode"
              is_hidden_label
              value={waiting}
              onChange={(chosen) => change({ waiting: chosen })}
              options={[
                { value: '', text: 'All game modes' },
                ...namesOf(game_modes, waiting).map((name) => ({ value: name, text: name })),
              ]}
            />
          ) : null}
        </>
      }
    >
      <DataTable
        label="Waiting by game mode"
        rows={shown}
        rowId={({ game_mode }) => game_mode}
        empty="This game mode has no rules."
        columns={MODE_COLUMNS}
      />
      {total === 0 ? (
        <p className="border-t border-line px-3 py-3 text-soft">No request waits for a match.</p>
      ) : (
        <div className="border-t border-line">
          <DataTable
            label="Waiting requests"
            rows={requests}
            rowId={({ player_id }) => player_id}
            empty="The requests that waited have their seats."
            columns={requestColumns(game_modes)}
          />
        </div>
      )}
      {requests.length < total && requests.length > 0 ? (
        <p className="border-t border-line px-3 py-2 text-xs text-soft">
          These are the {count(requests.length)} requests that have waited longest, of {count(total)}.
        </p>
      ) : null}
    </Section>
  )
}

/** `chosen`: also listed when it has no rules any more. */
function namesOf(game_modes: readonly WaitingGameMode[], chosen: string): string[] {
  const names = game_modes.map(({ game_mode }) => game_mode)
  return chosen === '' || names.includes(chosen) ? names : [...names, chosen]
}

function waitText(ms: number): string {
  return ms < 1_000 ? 'less than 1 s' : duration(ms)
}

const MODE_COLUMNS: Column<WaitingGameMode>[] = [
  { id: 'mode', title: 'Game mode', cell: ({ game_mode }) => <span className="font-medium">{game_mode}</span> },
  { id: 'requests', title: 'Requests', is_number: true, cell: ({ requests }) => count(requests) },
  { id: 'players', title: 'Players', is_number: true, cell: ({ players }) => count(players) },
  {
    id: 'oldest',
    title: 'Oldest wait',
    is_number: true,
    cell: ({ oldest_wait_ms }) => (oldest_wait_ms === undefined ? '' : waitText(oldest_wait_ms)),
  },
  {
    id: 'usual',
    is_secondary: true,
    title: 'Usual wait',
    is_number: true,
    cell: ({ usual_wait_ms }) => (
      <span title="Half of the last players with a match, in the last hour, waited at most as long.">
        {usual_wait_ms === undefined ? 'too few matches' : waitText(usual_wait_ms)}
      </span>
    ),
  },
  {
    id: 'match',
    is_secondary: true,
    title: 'Players of a match',
    is_number: true,
    cell: ({ players_min, players_max }) =>
      players_min === players_max ? count(players_max) : `${count(players_min)} to ${count(players_max)}`,
  },
  {
    id: 'away',
    is_secondary: true,
    title: 'Away',
    is_number: true,
    cell: ({ away_requests }) => (
      <span title="No call waits for them any more. They keep their place for at most 15 s.">
        {count(away_requests)}
      </span>
    ),
  },
]

function requestColumns(game_modes: readonly WaitingGameMode[]): Column<WaitingRequest>[] {
  const columns: Column<WaitingRequest>[] = [
    { id: 'wait', title: 'Waits', width: 7, cell: ({ create_ts }) => <Age since={create_ts} /> },
    {
      id: 'mode',
      is_secondary: true,
      title: 'Game mode',
      cell: ({ game_mode, tags }) => <ModeAndTags mode={game_mode} tags={tags} />,
    },
    {
      id: 'party',
      is_secondary: true,
      title: 'Players',
      is_number: true,
      cell: ({ player_count }) => (player_count === 1 ? '1' : `party of ${count(player_count)}`),
    },
    {
      id: 'missing',
      title: 'Missing',
      is_number: true,
      cell: ({ game_mode, players_missing }) => {
        const players_max = game_modes.find((mode) => mode.game_mode === game_mode)?.players_max
        return players_max === undefined ? count(players_missing) : `${count(players_missing)} of ${count(players_max)}`
      },
    },
    { id: 'refused', is_text: true, title: 'What refuses others', cell: (request) => <Refusing request={request} /> },
    {
      id: 'values',
      is_secondary: true,
      is_text: true,
      title: 'Compared by',
      cell: (request) => <Values of={request} />,
    },
  ]
  return game_modes.length > 1 ? columns : columns.filter(({ id }) => id !== 'mode')
}

function ModeAndTags({ mode, tags = {} }: { mode: string; tags: WaitingRequest['tags'] }) {
  const pairs = Object.entries(tags)
  return (
    <>
      {mode}
      {pairs.length === 0 ? null : (
        <span className="text-soft"> ({pairs.map(([name, value]) => `${name}=${value}`).join(', ')})</span>
      )}
    </>
  )
}

function Refusing({ request }: { request: WaitingRequest }) {
  const { refused_by, candidates, players_waiting, player_count } = request
  if (refused_by.length === 0) {
    const is_alone = players_waiting <= player_count
    const others = candidates === 0 ? 'the others have other texts' : 'nothing'
    return <span className="text-soft">{is_alone ? 'no other request waits' : others}</span>
  }
  return (
    <ul className="flex flex-col gap-0.5">
      {refused_by.map((refusing) => (
        <li key={refusing.rule}>
          <code>{refusing.rule}</code> {refusingRuleText(refusing)}
        </li>
      ))}
    </ul>
  )
}

function Values({ of: { values, latencies_ms = {} } }: { of: WaitingRequest }) {
  const shown = [
    ...values.map(({ rule, value }) => ({ name: rule, text: textOf(value) })),
    ...Object.entries(latencies_ms).map(([region, ms]) => ({ name: region, text: `${count(Math.round(ms))} ms` })),
  ]
  if (shown.length === 0) return <span className="text-soft">nothing</span>
  return (
    <ul className="flex flex-wrap gap-x-3 gap-y-0.5">
      {shown.map(({ name, text }) => (
        <li key={name} className="wrap-anywhere">
          <code>{name}</code> <span className="numbers">{text}</span>
        </li>
      ))}
    </ul>
  )
}

function textOf(value: WaitingRequest['values'][number]['value']): string {
  if (typeof value === 'number') return count(value)
  return typeof value === 'string' ? value : value.join(', ')
}
