// What was deployed to a namespace.
import { gameLink, HOME } from '../../links.ts'
import { Page } from '../../parts/page.tsx'
import { versionName } from '../game/game.ts'
import { useNamespace } from './namespace.ts'

export default function Deploys() {
  const { game, namespace } = useNamespace()
  const crumbs = [
    { text: 'Home', to: HOME },
    { text: game.display_name, to: gameLink(game.game_id) },
  ]
  return (
    <Page title={namespace.display_name} crumbs={crumbs}>
      <p>{versionName(game, namespace.version_id)}</p>
    </Page>
  )
}
