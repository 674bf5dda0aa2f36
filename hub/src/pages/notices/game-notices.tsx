// The targets of notices of a game.
import { putNoticeTarget } from '../../api/operations.gen.ts'
import { gameLink, HOME } from '../../links.ts'
import { useGame, useMay } from '../game/game.ts'
import { Notices } from './notices.tsx'

export default function GameNotices() {
  const { game } = useGame()
  const may = useMay()
  const { game_id, display_name } = game
  const crumbs = [
    { text: 'Home', to: HOME },
    { text: display_name, to: gameLink(game_id) },
  ]
  return <Notices scope={{ query: { game_id }, option: '', crumbs, may_change: may(putNoticeTarget) }} />
}
