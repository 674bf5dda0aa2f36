// Fake players of the playground: they take seats without playing, and are removed from here.
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { CallError } from '../../api/call-error.ts'
import { lobbyLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { shortId } from '../../parts/copy.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Badge, Failure } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { Section } from '../../parts/page.tsx'
import { useNamespace } from '../namespace/namespace.ts'
import {
  FAKE_PLAYERS_MAX,
  type FindBody,
  fakeAddresses,
  findAsBackend,
  removeFakePlayer,
  showFailure,
} from './playground-finds.ts'

type Fake = { address: string; lobby_id: string; region: string }

export function FakePlayers({ body }: { body: FindBody | null }) {
  const { params } = useNamespace()
  const [wanted, setWanted] = useState('3')
  const [fakes, setFakes] = useState<readonly Fake[]>([])
  const [refusal, setRefusal] = useState<CallError | null>(null)
  const [is_busy, setBusy] = useState(false)
  const number = Math.floor(Number(wanted))
  const left = FAKE_PLAYERS_MAX - fakes.length
  const is_ready = body !== null && number >= 1 && number <= left
  async function add(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (!is_ready) return
    setBusy(true)
    setRefusal(null)
    const addresses = fakeAddresses(number, new Set(fakes.map(({ address }) => address)))
    const { captcha: _, ...rest } = body
    await findAsBackend(params, rest, addresses, ({ seat, error }, address) => {
      if (error !== null) setRefusal(error)
      if (seat !== null) {
        const { lobby_id, region } = seat.lobby
        setFakes((before) => [...before, { address, lobby_id, region: region.display_name }])
      }
    }).catch(showFailure)
    setBusy(false)
  }
  async function remove(chosen: readonly Fake[]): Promise<void> {
    setBusy(true)
    for (const { address, lobby_id } of chosen) {
      await removeFakePlayer(params, address, lobby_id).then(
        () => setFakes((before) => before.filter((fake) => fake.address !== address)),
        showFailure,
      )
    }
    setBusy(false)
  }
  return (
    <Section
      title="Fake players"
      lead="They take seats with the members chosen above, each from an address of its own, and never connect. Their seats expire after the deadline of the game mode."
      actions={
        fakes.length === 0 ? undefined : (
          <Button is_busy={is_busy} onClick={() => void remove(fakes)}>
            Remove all
          </Button>
        )
      }
    >
      <form
        aria-label="Fake players"
        className="flex flex-wrap items-end gap-3 p-4"
        onSubmit={(event) => void add(event)}
      >
        <div className="w-40">
          <TextField
            label="How many"
            type="number"
            min={1}
            max={left}
            value={wanted}
            onChange={setWanted}
            {...(number > left ? { error: `At most ${plural(left, 'more player')}.` } : {})}
          />
        </div>
        <Button type="submit" is_busy={is_busy} disabled={!is_ready}>
          Add
        </Button>
      </form>
      {refusal === null ? null : (
        <div className="px-4 pb-4">
          <Failure error={refusal} />
        </div>
      )}
      {fakes.length === 0 ? null : (
        <FakeTable fakes={fakes} is_busy={is_busy} onRemove={(fake) => void remove([fake])} />
      )}
    </Section>
  )
}

function FakeTable({
  fakes,
  is_busy,
  onRemove,
}: {
  fakes: readonly Fake[]
  is_busy: boolean
  onRemove: (fake: Fake) => void
}) {
  const { params } = useNamespace()
  return (
    <DataTable
      label="Fake players"
      rows={fakes}
      rowId={({ address }) => address}
      empty=""
      columns={[
        { id: 'address', title: 'Address', cell: ({ address }) => <code>{address}</code> },
        {
          id: 'lobby',
          title: 'Lobby',
          sortBy: ({ lobby_id }) => lobby_id,
          cell: ({ lobby_id }) => (
            <Link
              to={lobbyLink(params.game_id, params.namespace_id, lobby_id)}
              title={lobby_id}
              className="font-mono text-xs"
            >
              {shortId(lobby_id)}
            </Link>
          ),
        },
        { id: 'region', title: 'Region', cell: ({ region }) => region },
        { id: 'state', title: 'State', cell: () => <Badge tone="warn">reserved</Badge> },
        {
          id: 'remove',
          title: 'Remove',
          cell: (fake) => (
            <Button
              kind="quiet"
              disabled={is_busy}
              aria-label={`Remove ${fake.address}`}
              onClick={() => onRemove(fake)}
            >
              Remove
            </Button>
          ),
        },
      ]}
    />
  )
}
