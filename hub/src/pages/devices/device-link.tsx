// The page of a device link: a program, such as the CLI on another machine, asks for a token of a game. The person compares
// the number with the program's, chooses the game, and lets the program in or refuses it.
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { completeDeviceLink, getGames, inspectDeviceLink, refuseDeviceLink } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CheckField, SelectField } from '../../parts/fields.tsx'
import { Failure, Loading, Notice, Pending } from '../../parts/notice.tsx'
import { duration } from '../../parts/numbers.ts'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Ago, Instant } from '../../parts/time.tsx'
import { usePerson } from '../../shell/person.tsx'

type Ended = 'completed' | 'refused'

export default function DeviceLink() {
  const { device_link_token = '' } = useParams({ strict: false }) as { device_link_token?: string }
  const [ended, setEnded] = useState<Ended | null>(null)
  return (
    <Page title="Let a program in" crumbs={[{ text: 'Home', to: HOME }]}>
      {ended === null ? (
        <Asking device_link_token={device_link_token} onEnd={setEnded} />
      ) : (
        <div role="status">
          <Notice tone={ended === 'completed' ? 'good' : 'plain'}>
            {ended === 'completed' ? 'The program is let in.' : 'The program is refused.'} You can close this page.
          </Notice>
        </div>
      )}
    </Page>
  )
}

type AskingProps = { device_link_token: string; onEnd: (ended: Ended) => void }

function Asking({ device_link_token, onEnd }: AskingProps) {
  const read = useCall(inspectDeviceLink, { query: { device_link_token } })
  if (read.error?.code === 'CLOUD_DEVICE_LINK_INVALID') {
    return (
      <div role="alert">
        <Notice tone="bad">
          This link is not valid. A link ends after an hour, and when it is refused. Run the command again for a new
          one.
        </Notice>
      </div>
    )
  }
  if (read.data === undefined) return <Pending read={read} what="Reading the link" />
  const { name, client_ip, create_ts, expire_ts, code, is_complete, grant } = read.data
  if (is_complete) return <Notice>A person has completed this link already. A link works once.</Notice>
  return (
    <>
      <Section title="A program asks for access">
        <Facts
          facts={[
            ['Machine', name ?? 'not given'],
            ['Address', client_ip ?? 'unknown'],
            ['Asked', <Ago key="asked" ts={create_ts} />],
            ['Link ends', <Instant key="ends" ts={expire_ts} />],
            [
              'Number',
              <code key="code" className="text-lg">
                …{code}
              </code>,
            ],
            [
              'It will be allowed',
              `everything in the chosen game that a developer may do, for ${duration(grant.lifetime_ms)}. Its token is on the page Tokens of the game, and can be revoked there.`,
            ],
          ]}
        />
      </Section>
      <p className="max-w-3xl text-soft">
        The program chose the name of the machine, so the name may be false. The number cannot be chosen.
      </p>
      <Choice device_link_token={device_link_token} code={code} onEnd={onEnd} />
    </>
  )
}

function Choice({ device_link_token, code, onEnd }: AskingProps & { code: string }) {
  const games = useGamesToDevelop()
  const [chosen_id, setChosen] = useState<string | null>(null)
  const [is_same, setSame] = useState(false)
  const complete = useChange(completeDeviceLink, { shows_errors: true, onDone: () => onEnd('completed') })
  const refuse = useChange(refuseDeviceLink, { shows_errors: true, onDone: () => onEnd('refused') })
  if (games.list === undefined) return games.error === null ? <Loading /> : <Failure error={games.error} />
  const game_id = chosen_id ?? games.list[0]?.game_id ?? ''
  const error = complete.error ?? refuse.error
  return (
    <form
      aria-label="Let the program in"
      className="flex max-w-xl flex-col items-start gap-4"
      onSubmit={(event) => {
        event.preventDefault()
        if (is_same && game_id !== '') complete.mutate({ body: { device_link_token, game_id } })
      }}
    >
      {games.list.length === 0 ? (
        <Notice tone="warn">You are a developer of no game, so you cannot let a program in.</Notice>
      ) : (
        <>
          <SelectField
            label="Game"
            value={game_id}
            options={games.list.map(({ game_id: value, text }) => ({ value, text }))}
            onChange={setChosen}
          />
          {games.is_cut ? <p className="text-xs text-soft">These are your 1,000 newest games.</p> : null}
          <CheckField
            label={`The program was started by me, and shows the number …${code}`}
            checked={is_same}
            onChange={setSame}
          />
        </>
      )}
      {error === null ? null : <Failure error={error} />}
      <div className="flex gap-2">
        {games.list.length === 0 ? null : (
          <Button type="submit" kind="primary" disabled={!is_same} is_busy={complete.isPending}>
            Let it in
          </Button>
        )}
        <Button is_busy={refuse.isPending} onClick={() => refuse.mutate({ body: { device_link_token } })}>
          Refuse
        </Button>
      </div>
    </form>
  )
}

function useGamesToDevelop() {
  const { is_admin } = usePerson()
  const { data, error } = useCall(getGames, {})
  if (data === undefined) return { list: undefined, is_cut: false, error }
  const roles = new Map(data.groups.map(({ group_id, role }) => [group_id, role]))
  const list = data.games
    .filter(({ developer }) => is_admin || ['owner', 'developer'].includes(roles.get(developer.group_id) ?? ''))
    .map(({ game_id, display_name, developer }) => ({ game_id, text: `${display_name} (${developer.display_name})` }))
  return { list, is_cut: data.is_cut, error }
}
