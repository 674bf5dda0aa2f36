// The address of the site of a namespace, where its players play.
import { getBootstrap, getGameVersionById } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { buttonClass } from '../../parts/button.tsx'
import { useNamespace } from './namespace.ts'

/** The namespace whose site has the host of the game alone. */
const MAIN_NAMESPACE = 'prod'

/** Null while it is not known, and when the deployed version has no site. */
function useSiteAddress(): string | null {
  const { game, namespace } = useNamespace()
  const { version_id } = namespace
  const version = useCall(getGameVersionById, { params: { game_id: game.game_id, version_id } })
  const bootstrap = useCall(getBootstrap, {})
  const cdn = bootstrap.data?.domains?.cdn
  if (cdn === undefined || version.data?.version.config.cdn?.site_id === undefined) return null
  const host = namespace.name_id === MAIN_NAMESPACE ? game.name_id : `${game.name_id}--${namespace.name_id}`
  const { protocol, port } = location
  return `${protocol}//${host}.${cdn}${port === '' ? '' : `:${port}`}/`
}

export function OpenSite() {
  const address = useSiteAddress()
  if (address === null) return null
  return (
    <a href={address} target="_blank" rel="noreferrer" title={address} className={buttonClass('plain')}>
      Open the site
    </a>
  )
}
