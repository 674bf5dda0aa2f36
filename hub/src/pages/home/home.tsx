// Home: the games of the person.
import { Link } from '@tanstack/react-router'
import { gameLink } from '../../links.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { Pending } from '../../parts/notice.tsx'
import { count } from '../../parts/numbers.ts'
import { Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { useGames } from '../../shell/person.tsx'

export default function Home() {
  const games = useGames()
  return (
    <Page title="Home">
      <Pending read={games} />
      <Section title="Games">
        <DataTable
          label="Games"
          rows={games.data?.games ?? []}
          rowId={(game) => game.game_id}
          empty="There is no game yet."
          columns={[
            {
              id: 'name',
              title: 'Game',
              sortBy: (game) => game.display_name,
              cell: (game) => <Link to={gameLink(game.game_id)}>{game.display_name}</Link>,
            },
            { id: 'group', title: 'Group', cell: (game) => game.developer.display_name },
            {
              id: 'players',
              title: 'Players',
              is_number: true,
              sortBy: (game) => game.total_player_count,
              cell: (game) => count(game.total_player_count),
            },
            { id: 'created', title: 'Created', cell: (game) => <Ago ts={game.create_ts} /> },
          ]}
        />
      </Section>
    </Page>
  )
}
