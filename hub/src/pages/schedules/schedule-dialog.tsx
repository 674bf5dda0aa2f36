// The form of a schedule: its times, and what its kind needs.
import type { BodyOf, putSchedule as putOperation, Schedule, ScheduleKind } from '@musterhost/contract'
import { SCHEDULE_KINDS, SCHEDULE_TEXT_LENGTH_MAX } from '@musterhost/contract/schedule-kinds'
import { useState } from 'react'
import { putSchedule } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { CheckField, SelectField, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { errorAt } from '../forms.ts'
import type { Game } from '../game/game.ts'
import { ownZone, secondsOf, shortDuration } from './times.ts'

type Member = 'game_modes' | 'regions' | 'count' | 'duration' | 'deadline' | 'text' | 'before_15' | 'before_5'
type Body = BodyOf<typeof putOperation>

const NAMES: Readonly<Record<ScheduleKind, string>> = {
  idle_lobbies: 'Idle lobbies: more wait for players',
  announce: 'Announcement: lobbies get a line',
  restart: 'Restart: lobbies end, and others start',
  drain: 'Drain: lobbies end, and none starts',
}
const MEMBERS: Readonly<Record<ScheduleKind, readonly Member[]>> = {
  idle_lobbies: ['count', 'duration', 'game_modes', 'regions'],
  announce: ['text', 'game_modes', 'regions'],
  restart: ['deadline', 'before_15', 'before_5', 'game_modes', 'regions'],
  drain: ['duration', 'deadline', 'before_15', 'before_5'],
}
const LABELS: Readonly<Record<Member, { label: string; hint: string; placeholder: string; at: string }>> = {
  count: { label: 'Idle lobbies', hint: 'Of each game mode and region, at least.', placeholder: '4', at: 'count' },
  duration: { label: 'Length of the window', hint: 'Such as 30m, 4h or 2d.', placeholder: '4h', at: 'duration_s' },
  deadline: {
    ...{ label: 'Deadline', placeholder: '30m', at: 'deadline_s' },
    hint: 'After it lobbies with players end as well. For a drain, empty: never.',
  },
  text: { label: 'Line for the lobbies', hint: '', placeholder: 'say Good night', at: 'text' },
  before_15: {
    ...{ label: 'Line 15 minutes before', placeholder: 'say Restart in {minutes} minutes', at: 'announce_before' },
    hint: '{minutes} becomes the minutes until it. Empty: none.',
  },
  before_5: {
    ...{ label: 'Line 5 minutes before', placeholder: 'say Restart in {minutes} minutes', at: 'announce_before' },
    hint: 'Empty: none.',
  },
  game_modes: { label: 'Game modes', hint: 'With commas between. Empty: all.', placeholder: '', at: 'game_modes' },
  regions: { label: 'Regions', hint: 'With commas between. Empty: all.', placeholder: '', at: 'regions' },
}
const NO_DURATION = 'Use a number with a unit: 30m, 4h or 2d.'
const BEFORE_S = { before_15: 900, before_5: 300 } as const

type ScheduleDialogProps = { game: Game; schedule: Schedule | null; onClose: () => void }

export function ScheduleDialog({ game, schedule, onClose }: ScheduleDialogProps) {
  const [name, setName] = useState(schedule?.name ?? '')
  const [namespace_id, setNamespace] = useState(schedule?.namespace_id ?? game.namespaces[0]?.namespace_id ?? '')
  const [kind, setKind] = useState<ScheduleKind>(schedule?.kind ?? 'restart')
  const [cron, setCron] = useState(schedule?.cron ?? '0 5 * * *')
  const [time_zone, setZone] = useState(schedule?.time_zone ?? ownZone())
  const [is_paused, setPaused] = useState(schedule?.is_paused ?? false)
  const [texts, setTexts] = useState(textsOf(schedule))
  const put = useChange(putSchedule, { done: `${name} is saved.`, onDone: onClose, shows_errors: true })
  const body: Body = {
    ...{ namespace_id, name: name.trim(), kind, cron: cron.trim(), time_zone: time_zone.trim(), is_paused },
    ...valuesOf(kind, texts, schedule),
  }
  const wrong = MEMBERS[kind].find((member) => isDuration(member) && secondsOf(texts[member]) === undefined)
  return (
    <FormDialog
      title={schedule === null ? 'Add a schedule' : `Change ${schedule.name}`}
      submit="Save"
      is_wide
      is_busy={put.isPending}
      is_ready={body.name !== '' && body.cron !== '' && body.time_zone !== '' && wrong === undefined}
      error={put.error}
      onSubmit={() => put.mutate({ params: { game_id: game.game_id }, body })}
      onClose={onClose}
    >
      {schedule === null ? (
        <>
          <TextField
            label="Name"
            hint="Lower-case letters, digits and dashes."
            placeholder="nightly"
            maxLength={32}
            autoComplete="off"
            value={name}
            onChange={setName}
            error={errorAt(put.error, 'name')}
          />
          <SelectField
            label="Namespace"
            value={namespace_id}
            onChange={setNamespace}
            options={game.namespaces.map((one) => ({ value: one.namespace_id, text: one.display_name }))}
          />
          <SelectField
            label="What it does"
            value={kind}
            onChange={(chosen) => setKind(chosen as ScheduleKind)}
            options={SCHEDULE_KINDS.map((one) => ({ value: one, text: NAMES[one] }))}
            error={errorAt(put.error, 'kind')}
          />
        </>
      ) : null}
      <TextField
        label="Times"
        hint="Minute, hour, day of the month, month, day of the week. 0 18 * * FRI is each Friday at 18:00."
        autoComplete="off"
        spellCheck={false}
        value={cron}
        onChange={setCron}
        error={errorAt(put.error, 'cron')}
      />
      <TextField
        label="Time zone"
        hint="For example Europe/Berlin, America/New_York or UTC."
        autoComplete="off"
        spellCheck={false}
        value={time_zone}
        onChange={setZone}
        error={errorAt(put.error, 'time_zone')}
      />
      {MEMBERS[kind].map((member) => {
        const { at, ...words } = LABELS[member]
        return (
          <TextField
            key={member}
            {...words}
            autoComplete="off"
            maxLength={SCHEDULE_TEXT_LENGTH_MAX}
            value={texts[member]}
            onChange={(text) => setTexts({ ...texts, [member]: text })}
            error={member === wrong ? `${texts[member]} is no time. ${NO_DURATION}` : errorAt(put.error, at)}
          />
        )
      })}
      <CheckField
        label="Paused"
        hint="Nothing happens at its times. What is under way is cancelled."
        checked={is_paused}
        onChange={setPaused}
      />
    </FormDialog>
  )
}

function textsOf(schedule: Schedule | null): Record<Member, string> {
  const before = (before_s: number): string =>
    schedule?.announce_before?.find((one) => one.before_s === before_s)?.text ?? ''
  const duration = (seconds: number | undefined): string => (seconds === undefined ? '' : shortDuration(seconds))
  return {
    count: String(schedule?.count ?? ''),
    duration: duration(schedule?.duration_s),
    deadline: duration(schedule?.deadline_s),
    text: schedule?.text ?? '',
    before_15: before(BEFORE_S.before_15),
    before_5: before(BEFORE_S.before_5),
    game_modes: schedule?.game_modes?.join(', ') ?? '',
    regions: schedule?.regions?.join(', ') ?? '',
  }
}

/** The members that the kind takes and that are filled in. */
function valuesOf(kind: ScheduleKind, texts: Record<Member, string>, schedule: Schedule | null): Partial<Body> {
  const text = (member: Member): string => (MEMBERS[kind].includes(member) ? texts[member].trim() : '')
  const list = (member: Member): string[] =>
    text(member)
      .split(/[\s,;]+/)
      .filter((one) => one !== '')
  const [count, duration_s, deadline_s] = [text('count'), secondsOf(text('duration')), secondsOf(text('deadline'))]
  const shown = Object.entries(BEFORE_S).flatMap(([member, before_s]) => {
    const line = text(member as Member)
    return line === '' ? [] : [{ before_s, text: line }]
  })
  // Other announcements, which the form does not show, stay.
  const offsets: readonly number[] = Object.values(BEFORE_S)
  const kept = (schedule?.announce_before ?? []).filter(({ before_s }) => !offsets.includes(before_s))
  const announce_before = [...kept, ...shown]
  return {
    ...(count === '' ? {} : { count: Number(count) }),
    ...(duration_s == null ? {} : { duration_s }),
    ...(deadline_s == null ? {} : { deadline_s }),
    ...(text('text') === '' ? {} : { text: text('text') }),
    ...(announce_before.length === 0 ? {} : { announce_before }),
    ...(list('game_modes').length === 0 ? {} : { game_modes: list('game_modes') }),
    ...(list('regions').length === 0 ? {} : { regions: list('regions') }),
  }
}

function isDuration(member: Member): boolean {
  return member === 'duration' || member === 'deadline'
}
