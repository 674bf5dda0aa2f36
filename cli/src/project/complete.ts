// The version config that is sent: that of the file, with the ids of the uploaded build and site.
import type { VersionConfig } from '@musterhost/contract'

/** A null id leaves that id out, and an image of a registry needs no id of a build. The config of the file is not changed. */
export function completeVersion(
  version: VersionConfig,
  { build_id, site_id }: { build_id: string | null; site_id: string | null },
): VersionConfig {
  const complete = structuredClone(version)
  if (site_id !== null) complete.cdn = { ...complete.cdn, site_id }
  const { matchmaker } = complete
  if (matchmaker === undefined || build_id === null) return complete
  const modes = Object.values(matchmaker.game_modes)
  if (modes.some(({ docker }) => docker === undefined)) matchmaker.docker ??= {}
  for (const section of [matchmaker, ...modes]) {
    // A game mode inherits the image of a registry.
    if (section.docker !== undefined && section.docker.image === undefined && matchmaker.docker?.image === undefined)
      section.docker = { ...section.docker, image_id: build_id }
  }
  return complete
}
