// How a trunk is opened. The edge sends a request to the port of the role, with its proof (tokens/edge-proof.ts) and the
// versions that it speaks. The role returns 101 with the version that both speak, and the connection carries frames from then
// on (trunk-frames.ts). A role of another build returns another status: its requests go over HTTP.
import { TRUNK_VERSION, TRUNK_VERSION_MIN } from './compatibility.ts'

/** The value of the Upgrade header. */
export const TRUNK_PROTOCOL = 'muster-trunk'

/** The value of TRUNK_HEADER from the edge. */
export const TRUNK_VERSIONS = `${TRUNK_VERSION_MIN}-${TRUNK_VERSION}`

/** Returns the highest version that this program speaks too; null: there is none, or the text names no versions. */
export function commonVersion(versions: string): number | null {
  const [, min, max] = /^(\d{1,4})-(\d{1,4})$/.exec(versions) ?? []
  if (min === undefined || max === undefined) return null
  const common = Math.min(Number(max), TRUNK_VERSION)
  return common >= Math.max(Number(min), TRUNK_VERSION_MIN) ? common : null
}
