// Search in a game: one id or address, and every seat, lobby and request that belongs to it.
import type { FoundLobby, FoundPlayer } from '@musterhost/contract'
import { seatEndText } from '@musterhost/contract/explanation-words'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { searchGame } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { ShortId, shortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Badge, Notice, Pending } from '../../parts/notice.tsx'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useUrlState } from '../../shell/url-state.ts'
import { type Game, useGame, useMay } from '../game/game.ts'
import { regionName } from '../lobbies/lobby-parts.tsx'
import { namespaceName, RayTable } from './ray-table.tsx'

/** Seats change while the page is open. */
const EVERY_MS = 5_000

export default function Search() {
  const { game } = useGame()
  const may = useMay()
  const [{ text }, change] = useUrlState(['text'])
  return (
    <Page
      title="Search"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
      ]}
      lead="The id of a player, an identity, a lobby or a ray, or the address of a client. All namespaces of the game are searched."
    >
      {may(searchGame) ? (
        <>
          <SearchForm key={text} text={text} onSearch={(next) => change({ text: next })} />
          {text === '' ? null : <Found key={`found ${text}`} game={game} text={text} />}
        </>
      ) : (
        <Notice tone="warn">Developers and owners of the group may search.</Notice>
      )}
    </Page>
  )
}

function SearchForm({ text, onSearch }: { text: string; onSearch: (text: string) => void }) {
  const [draft, setDraft] = useState(text)
  function send(event: FormEvent): void {
    event.preventDefault()
    onSearch(draft.trim())
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: the browsers that the hub supports have no search element yet.
    <form role="search" className="flex flex-wrap items-end gap-3" onSubmit={send}>
      <div className="w-full min-w-0 sm:w-96">
        <TextField
          label="Id or address"
          type="search"
          value={draft}
          maxLength={64}
          spellCheck={false}
          autoComplete="off"
          placeholder="203.0.113.7"
          onChange={setDraft}
        />
      </div>
      <Button type="submit" kind="primary" disabled={draft.trim() === ''}>
        Search
      </Button>
    </form>
  )
}

function Found({ game, text }: { game: Game; text: string }) {
  const input = { params: { game_id: game.game_id }, query: { text } }
  const read = useCall(searchGame, input, { every_ms: EVERY_MS })
  if (read.data === undefined) return <Pending read={read} what="Searching" />
  const { players, lobbies, rays } = read.data
  return (
    <>
      <Section
        title="Players"
        actions={<CopyAs operation={searchGame} input={input} muster={`search ${text} --game ${game.name_id}`} />}
      >
        <Players game={game} players={players.items} />
        {players.is_cut ? <Cut /> : null}
      </Section>
      <Section title="Lobbies">
        <Lobbies game={game} lobbies={lobbies.items} />
        {lobbies.is_cut ? <Cut /> : null}
      </Section>
      <Section title="Requests" lead="Finds, joins and refusals that were kept. A click on a ray explains the request.">
        <RayTable game={game} rays={rays.items} empty="No kept request." />
        {rays.is_cut ? <Cut /> : null}
      </Section>
    </>
  )
}

function Cut() {
  return <p className="border-t border-line px-3 py-2 text-xs text-soft">There are more. These are the newest 20.</p>
}

function SearchLink({ game, text, shown }: { game: Game; text: string; shown: string }) {
  return (
    <Link
      to={gameLink(game.game_id, 'search')}
      search={{ text } as never}
      title={`Search for ${text}`}
      className="font-mono text-xs"
    >
      {shown}
    </Link>
  )
}

function Players({ game, players }: { game: Game; players: readonly FoundPlayer[] }) {
  return (
    <DataTable
      label="Players"
      rows={players}
      rowId={({ player_id }) => player_id}
      empty="No player."
      columns={[
        { id: 'player', title: 'Player', cell: ({ player_id }) => <ShortId id={player_id} /> },
        {
          id: 'lobby',
          title: 'Lobby',
          cell: ({ lobby_id, namespace_id }) => (
            <Link to={lobbyLink(game.game_id, namespace_id, lobby_id)} title={lobby_id} className="font-mono text-xs">
              {shortId(lobby_id)}
            </Link>
          ),
        },
        {
          id: 'namespace',
          is_secondary: true,
          title: 'Namespace',
          cell: ({ namespace_id }) => namespaceName(game, namespace_id),
        },
        {
          id: 'client',
          title: 'Client',
          cell: ({ client_key }) => <SearchLink game={game} text={client_key} shown={client_key} />,
        },
        {
          id: 'identity',
          is_secondary: true,
          title: 'Identity',
          cell: ({ identity_id, namespace_id }) =>
            identity_id === undefined ? (
              <span className="text-soft">none</span>
            ) : (
              <>
                <SearchLink game={game} text={identity_id} shown={shortId(identity_id)} />{' '}
                <Link
                  to={namespaceLink(game.game_id, namespace_id, 'ratings')}
                  search={{ identity: identity_id } as never}
                >
                  ratings
                </Link>
              </>
            ),
        },
        {
          id: 'seat',
          is_secondary: true,
          title: 'Got the seat',
          sortBy: ({ create_ts }) => create_ts,
          cell: (row) => <Ago ts={row.create_ts} />,
        },
        { id: 'state', title: 'State', cell: (player) => <SeatState player={player} /> },
        {
          id: 'why',
          title: 'Why here',
          cell: ({ player_id }) => (
            <Link to={gameLink(game.game_id, 'rays')} search={{ player: player_id } as never}>
              requests
            </Link>
          ),
        },
      ]}
    />
  )
}

function SeatState({ player: { connect_ts, remove_ts, remove_reason } }: { player: FoundPlayer }) {
  if (remove_ts !== undefined) {
    return (
      <>
        <Badge>left</Badge> <Ago ts={remove_ts} />: {seatEndText(remove_reason ?? 'unknown')}
      </>
    )
  }
  return connect_ts === undefined ? <Badge tone="warn">reserved</Badge> : <Badge tone="good">connected</Badge>
}

function Lobbies({ game, lobbies }: { game: Game; lobbies: readonly FoundLobby[] }) {
  return (
    <DataTable
      label="Lobbies"
      rows={lobbies}
      rowId={({ lobby_id }) => lobby_id}
      empty="No lobby."
      columns={[
        {
          id: 'lobby',
          title: 'Lobby',
          cell: ({ lobby_id, namespace_id }) => (
            <Link to={lobbyLink(game.game_id, namespace_id, lobby_id)} title={lobby_id} className="font-mono text-xs">
              {shortId(lobby_id)}
            </Link>
          ),
        },
        {
          id: 'who',
          title: 'Its players',
          cell: ({ lobby_id }) => <SearchLink game={game} text={lobby_id} shown="search" />,
        },
        {
          id: 'namespace',
          is_secondary: true,
          title: 'Namespace',
          cell: ({ namespace_id }) => namespaceName(game, namespace_id),
        },
        { id: 'mode', title: 'Game mode', cell: ({ game_mode }) => game_mode },
        { id: 'region', is_secondary: true, title: 'Region', cell: ({ region_id }) => regionName(game, region_id) },
        { id: 'created', is_secondary: true, title: 'Created', cell: ({ create_ts }) => <Ago ts={create_ts} /> },
        {
          id: 'stopped',
          title: 'State',
          cell: ({ stop_ts }) =>
            stop_ts === undefined ? (
              <Badge tone="good">running</Badge>
            ) : (
              <>
                <Badge>stopped</Badge> <Ago ts={stop_ts} />
              </>
            ),
        },
      ]}
    />
  )
}
