// The form of a target: its kind, what this kind needs, and a box for each event.
import type { NoticeEvent, NoticeKind, NoticeTarget } from '@musterhost/contract'
import {
  NOTICE_EVENT_NAMES,
  NOTICE_EVENTS,
  NOTICE_KINDS,
  PLATFORM_NOTICE_EVENTS,
} from '@musterhost/contract/notice-events'
import { useState } from 'react'
import { putNoticeTarget } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { CheckField, SelectField, TextField } from '../../parts/fields.tsx'
import { Dialog, FormDialog } from '../../parts/lazy-dialogs.tsx'
import { errorAt } from '../forms.ts'
import type { NoticeScope } from './scope.ts'

type Member = 'url' | 'token' | 'topic' | 'chat_id' | 'addresses'

const NAMES: Readonly<Record<NoticeKind, string>> = {
  discord: 'Discord',
  slack: 'Slack',
  telegram: 'Telegram',
  ntfy: 'ntfy',
  email: 'E-mail',
  webhook: 'A webhook of your own',
}
/** The members of each kind, the secret ones with what is shown of them. */
const MEMBERS: Readonly<Record<NoticeKind, readonly Member[]>> = {
  discord: ['url'],
  slack: ['url'],
  telegram: ['token', 'chat_id'],
  ntfy: ['topic', 'url', 'token'],
  email: ['addresses'],
  webhook: ['url'],
}
const LABELS: Readonly<Record<Member, { label: string; placeholder: string }>> = {
  url: { label: 'Address', placeholder: 'https://' },
  token: { label: 'Token', placeholder: '' },
  topic: { label: 'Topic', placeholder: 'muster-8fk2m9x1' },
  chat_id: { label: 'Chat', placeholder: '-1001234567890' },
  addresses: { label: 'Addresses, with commas between', placeholder: 'ada@example.com' },
}
const SECRET: readonly Member[] = ['url', 'token', 'topic']
const DEFAULT_EVENTS: readonly NoticeEvent[] = ['deploy_live', 'deploy_failed', 'servers_crashing', 'region_full']

type TargetDialogProps = { scope: NoticeScope; target: NoticeTarget | null; onClose: () => void }

export function TargetDialog({ scope, target, onClose }: TargetDialogProps) {
  const [name, setName] = useState(target?.name ?? '')
  const [kind, setKind] = useState<NoticeKind>(target?.kind ?? 'discord')
  const [events, setEvents] = useState<readonly NoticeEvent[]>(target?.events ?? DEFAULT_EVENTS)
  const [is_paused, setPaused] = useState(target?.is_paused ?? false)
  const [signing_key, setKey] = useState<string | null>(null)
  const [texts, setTexts] = useState<Partial<Record<Member, string>>>({
    chat_id: target?.chat_id ?? '',
    addresses: target?.addresses?.join(', ') ?? '',
  })
  const put = useChange(putNoticeTarget, {
    done: `${name} is saved. Test it.`,
    onDone: (response) => (response.signing_key === undefined ? onClose() : setKey(response.signing_key)),
    shows_errors: true,
  })
  if (signing_key !== null) return <KeyDialog name={name} signing_key={signing_key} onClose={onClose} />
  const { game_id } = scope.query
  const may = NOTICE_EVENT_NAMES.filter(
    (event) => (game_id === undefined && scope.query.group_id === undefined) || !PLATFORM_NOTICE_EVENTS.includes(event),
  )
  const members = MEMBERS[kind]
  const body = { ...scope.query, name: name.trim(), kind, events: [...events], is_paused, ...valuesOf(members, texts) }
  const kept = target !== null && target.kind === kind ? { ...filtersOf(target) } : {}
  return (
    <FormDialog
      title={target === null ? 'Add a target' : `Change ${target.name}`}
      submit="Save"
      is_wide
      is_busy={put.isPending}
      is_ready={body.name !== '' && events.length > 0}
      error={put.error}
      onSubmit={() => put.mutate({ body: { ...kept, ...body } })}
      onClose={onClose}
    >
      {target === null ? (
        <TextField
          label="Name"
          hint="Lower-case letters, digits and dashes."
          placeholder="team-chat"
          maxLength={32}
          autoComplete="off"
          value={name}
          onChange={setName}
          error={errorAt(put.error, 'name')}
        />
      ) : null}
      <SelectField
        label="Where notices go"
        value={kind}
        onChange={(chosen) => setKind(chosen as NoticeKind)}
        options={NOTICE_KINDS.map((one) => ({ value: one, text: NAMES[one] }))}
        error={errorAt(put.error, 'kind')}
      />
      {members.map((member) => (
        <TextField
          key={member}
          {...LABELS[member]}
          hint={hintOf(member, kind, target)}
          autoComplete="off"
          spellCheck={false}
          value={texts[member] ?? ''}
          onChange={(text) => setTexts({ ...texts, [member]: text })}
          error={errorAt(put.error, member)}
        />
      ))}
      <fieldset className="flex flex-col gap-1">
        <legend className="font-medium">Events</legend>
        {may.map((event) => (
          <CheckField
            key={event}
            label={event}
            hint={NOTICE_EVENTS[event]}
            checked={events.includes(event)}
            onChange={(is_on) => setEvents(is_on ? [...events, event] : events.filter((one) => one !== event))}
          />
        ))}
      </fieldset>
      <CheckField label="Paused" hint="Its notices wait." checked={is_paused} onChange={setPaused} />
    </FormDialog>
  )
}

function hintOf(member: Member, kind: NoticeKind, target: NoticeTarget | null): string {
  if (member === 'url' && kind === 'ntfy') return 'Server; empty: https://ntfy.sh.'
  if (!SECRET.includes(member)) return ''
  const stored = 'It is stored encrypted and not shown again.'
  return target?.kind === kind ? `${stored} Empty: it stays (${target.hint ?? 'set'}).` : stored
}

/** The members of the form that are filled in. */
function valuesOf(members: readonly Member[], texts: Partial<Record<Member, string>>): Partial<Record<Member, never>> {
  const values = members.flatMap((member): [Member, unknown][] => {
    const text = texts[member]?.trim() ?? ''
    if (text === '') return []
    return [[member, member === 'addresses' ? text.split(/[\s,;]+/).filter((one) => one !== '') : text]]
  })
  return Object.fromEntries(values) as Partial<Record<Member, never>>
}

/** Filters that this form does not show. */
function filtersOf({ game_ids, namespace_ids }: NoticeTarget) {
  return { ...(game_ids === undefined ? {} : { game_ids }), ...(namespace_ids === undefined ? {} : { namespace_ids }) }
}

function KeyDialog({ name, signing_key, onClose }: { name: string; signing_key: string; onClose: () => void }) {
  return (
    <Dialog title={`The key of ${name}`} onClose={onClose}>
      <p>Its notices are signed with this key. Copy it now: it is not shown again.</p>
      <CodeBlock label="Signing key">{signing_key}</CodeBlock>
    </Dialog>
  )
}
