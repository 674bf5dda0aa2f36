// The frame of a game's pages: it loads the game, and shows the navigation.
import { Outlet, useParams } from '@tanstack/react-router'
import { getGameById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Failure, Loading } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { useRole } from '../../shell/person.tsx'
import { GameContext } from './game.ts'
import { GameNav } from './game-nav.tsx'

const GAME_EVERY_MS = 10_000

export default function GameFrame() {
  const { game_id = '' } = useParams({ strict: false }) as { game_id?: string }
  const read = useCall(getGameById, { params: { game_id } }, { every_ms: GAME_EVERY_MS })
  const role = useRole(read.data?.game.developer_group_id)
  if (read.data === undefined || read.data.game.game_id !== game_id) {
    if (read.error === null) return <Loading what="Loading the game" />
    return (
      <Page title="Game" crumbs={[{ text: 'Home', to: HOME }]}>
        <Failure error={read.error} onRepeat={() => void read.refetch()} />
      </Page>
    )
  }
  return (
    <GameContext value={{ game: read.data.game, role }}>
      <GameNav game={read.data.game} />
      <Outlet />
    </GameContext>
  )
}
