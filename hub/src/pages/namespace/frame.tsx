// The frame of a namespace's pages: it loads the game and the namespace, and shows the navigation.
import { Outlet, useParams } from '@tanstack/react-router'
import { getGameById, getGameNamespaceById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { Failure, Loading } from '../../parts/notice.tsx'
import { Page } from '../../parts/page.tsx'
import { useRole } from '../../shell/person.tsx'
import { GameContext } from '../game/game.ts'
import { GameNav } from '../game/game-nav.tsx'
import { NamespaceContext } from './namespace.ts'

const RECORDS_EVERY_MS = 10_000

export default function NamespaceFrame() {
  const { game_id = '', namespace_id = '' } = useParams({ strict: false }) as Record<string, string>
  const options = { every_ms: RECORDS_EVERY_MS }
  const game = useCall(getGameById, { params: { game_id } }, options)
  const namespace = useCall(getGameNamespaceById, { params: { game_id, namespace_id } }, options)
  const role = useRole(game.data?.game.developer_group_id)
  if (game.data === undefined || namespace.data?.namespace.namespace_id !== namespace_id) {
    const failed = game.error === null ? namespace : game
    if (failed.error === null) return <Loading what="Loading the namespace" />
    return (
      <Page title="Namespace" crumbs={[{ text: 'Home', to: HOME }]}>
        <Failure error={failed.error} onRepeat={() => void failed.refetch()} />
      </Page>
    )
  }
  return (
    <GameContext value={{ game: game.data.game, role }}>
      <NamespaceContext value={namespace.data.namespace}>
        <GameNav game={game.data.game} namespace_id={namespace_id} />
        <Outlet />
      </NamespaceContext>
    </GameContext>
  )
}
