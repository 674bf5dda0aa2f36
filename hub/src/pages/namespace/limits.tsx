// Limits of the matchmaker in the namespace.
import { useState } from 'react'
import { updateGameNamespaceMatchmakerConfig } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { errorAt } from '../forms.ts'
import { useMay } from '../game/game.ts'
import { type Namespace, useNamespace } from './namespace.ts'

type LimitName = keyof Namespace['config']['matchmaker']

const LABELS: Record<LimitName, { label: string; hint?: string }> = {
  lobby_count_max: { label: 'Lobbies at a time' },
  max_players_per_client: {
    label: 'Players of one client',
    hint: 'A client is an IPv4 address, or an IPv6 /64 network. 0 blocks all.',
  },
  max_players_per_client_vpn: { label: 'Players of one client behind a VPN' },
  max_players_per_client_proxy: { label: 'Players of one client behind a proxy' },
  max_players_per_client_tor: { label: 'Players of one Tor exit' },
  max_players_per_client_hosting: { label: 'Players of one client at a hosting provider' },
}

export function Limits() {
  const { namespace, params } = useNamespace()
  const may = useMay()
  const limits = namespace.config.matchmaker
  const [changed, setChanged] = useState<Partial<Record<LimitName, string>>>({})
  const update = useChange(updateGameNamespaceMatchmakerConfig, {
    done: 'The limits are changed.',
    shows_errors: true,
    onDone: () => setChanged({}),
  })
  const names = Object.keys(LABELS) as LimitName[]
  const body = Object.fromEntries(
    names.flatMap((name) => {
      const text = changed[name]
      return text === undefined || text === '' || Number(text) === limits[name] ? [] : [[name, Number(text)]]
    }),
  )
  const may_change = may(updateGameNamespaceMatchmakerConfig)
  const assignments = Object.entries(body).map(([name, value]) => `${name}=${value}`)
  return (
    <Section title="Limits" lead="A lower limit removes no players.">
      <form
        className="flex flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault()
          update.mutate({ params, body })
        }}
      >
        <div className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
          {names.map((name) => (
            <TextField
              key={name}
              {...LABELS[name]}
              type="number"
              min={0}
              disabled={!may_change}
              value={changed[name] ?? String(limits[name])}
              onChange={(text) => setChanged({ ...changed, [name]: text })}
              error={errorAt(update.error, name)}
            />
          ))}
        </div>
        {update.error === null ? null : <Failure error={update.error} />}
        {may_change ? (
          <div className="flex gap-2">
            <Button type="submit" is_busy={update.isPending} disabled={assignments.length === 0}>
              Change the limits
            </Button>
            <CopyAs
              operation={updateGameNamespaceMatchmakerConfig}
              input={{ params, body }}
              muster={`limits set ${assignments.join(' ')} --namespace ${namespace.name_id}`}
            />
          </div>
        ) : null}
      </form>
    </Section>
  )
}
