// Where a deploy goes: a namespace of a game, or a preview.
import type { SessionNamespace } from '../session.ts'
import type { Version } from './versions.ts'

export type DeployTarget = {
  name_id: string
  namespace: SessionNamespace | null
  /** The version that runs now; null in a new preview. */
  current: Version | null
  /** Puts the version into use, and returns the namespace. */
  put(version_id: string): Promise<SessionNamespace>
}
