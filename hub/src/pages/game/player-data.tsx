// Data of one player: its export, its erasure, and the records of erasures.
import type { Erasure } from '@musterhost/contract'
import { useState } from 'react'
import { erasePlayerData, exportPlayerData, listErasures } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { startDownload } from '../../parts/download.ts'
import { TextField } from '../../parts/fields.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useGame, useMay } from './game.ts'

/** As ids are written. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function subjectOf(text: string): { identity_id: string } | { address: string } {
  const name = text.trim().toLowerCase()
  return ID.test(name) ? { identity_id: name } : { address: name }
}

export function PlayerDataSection() {
  const { game } = useGame()
  const may = useMay()
  const params = { game_id: game.game_id }
  const [player, setPlayer] = useState('')
  const [is_erasing, setErasing] = useState(false)
  const is_named = player.trim() !== ''
  const run = useChange(exportPlayerData, { shows_errors: true, onDone: ({ url }) => startDownload(url) })
  return (
    <>
      <Section
        title="Data of a player"
        lead="All that the platform has of one player, as a file, and its erasure. Seats, key-value data by identity, ratings, logs and rays."
      >
        <div className="flex flex-col gap-3 p-4">
          <TextField
            label="Player"
            hint="The id of an identity, or an address."
            value={player}
            onChange={setPlayer}
            autoComplete="off"
            spellCheck={false}
            error={run.error?.message}
          />
          <div className="flex flex-wrap gap-2">
            <Button
              disabled={!is_named || run.isPending}
              onClick={() => run.mutate({ params, body: subjectOf(player) })}
            >
              Export the data
            </Button>
            {may(erasePlayerData) ? (
              <Button kind="danger" disabled={!is_named} onClick={() => setErasing(true)}>
                Erase the data
              </Button>
            ) : null}
          </div>
        </div>
      </Section>
      <Erasures />
      {is_erasing ? <Erase player={player} onClose={() => setErasing(false)} /> : null}
    </>
  )
}

function Erase({ player, onClose }: { player: string; onClose: () => void }) {
  const { game } = useGame()
  return (
    <ActionDialog
      operation={erasePlayerData}
      input={{ params: { game_id: game.game_id }, body: subjectOf(player) }}
      words={{
        title: 'Erase the data of this player',
        submit: 'Erase the data',
        done: 'The data is erased. The record is listed here.',
        is_danger: true,
      }}
      muster={null}
      onClose={onClose}
    >
      <p className="wrap-anywhere">
        Everything of <code>{player.trim()}</code> in {game.display_name} is erased. Logs, the journal and backups keep
        it until they are removed. This cannot be undone.
      </p>
    </ActionDialog>
  )
}

function Erasures() {
  const { game } = useGame()
  const read = useCall(listErasures, { params: { game_id: game.game_id }, query: {} })
  return (
    <Section title="Erasures">
      <Pending read={read} what="Reading the erasures" />
      {read.data === undefined ? null : (
        <DataTable
          label="Erasures"
          rows={read.data.erasures}
          rowId={({ erasure_id }) => erasure_id}
          empty="No player was erased."
          columns={[
            { id: 'begin', title: 'Begun', cell: ({ begin_ts }) => <Ago ts={begin_ts} /> },
            { id: 'outcome', title: 'Outcome', cell: (erasure) => <Outcome erasure={erasure} /> },
            { id: 'left', title: 'Kept elsewhere', cell: ({ left }) => left.map(({ what }) => what).join(', ') },
          ]}
        />
      )}
    </Section>
  )
}

function Outcome({ erasure: { end_ts, counts } }: { erasure: Erasure }) {
  if (end_ts === undefined) return <Badge>interrupted: repeat it</Badge>
  const found = Object.entries(counts).filter(([, count]) => count > 0)
  return found.length === 0 ? 'nothing was found' : found.map(([name, count]) => `${name} ${count}`).join(', ')
}
