// The frame of a game's pages: it loads the game, and links its pages.
import { Outlet, useParams } from '@tanstack/react-router'
import { getGameById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink } from '../../links.ts'
import { Pending } from '../../parts/notice.tsx'
import { useRole } from '../../shell/person.tsx'
import { type Tab, Tabs } from '../../shell/tabs.tsx'
import { GameContext } from './game.ts'

const GAME_EVERY_MS = 10_000

export default function GameFrame() {
  const { game_id = '' } = useParams({ strict: false }) as { game_id?: string }
  const read = useCall(getGameById, { params: { game_id } }, { every_ms: GAME_EVERY_MS })
  const role = useRole(read.data?.game.developer_group_id)
  if (read.data === undefined || read.data.game.game_id !== game_id) {
    return (
      <div className="mx-auto max-w-7xl p-6">
        <Pending read={read} what="Loading the game" />
      </div>
    )
  }
  return (
    <GameContext value={{ game: read.data.game, role }}>
      <Tabs label={`Pages of ${read.data.game.display_name}`} tabs={tabsOf(game_id)} />
      <Outlet />
    </GameContext>
  )
}

function tabsOf(game_id: string): Tab[] {
  const to = (tab: string): string => gameLink(game_id, tab)
  return [
    { text: 'Overview', to: to(''), is_exact: true },
    { text: 'Search', to: to('search') },
    { text: 'Requests', to: to('rays') },
    { text: 'Versions', to: to('versions') },
    { text: 'Builds', to: to('builds') },
    { text: 'Sites', to: to('sites') },
    { text: 'Tokens', to: to('tokens') },
    { text: 'Settings', to: to('settings') },
  ]
}
