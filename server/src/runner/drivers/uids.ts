// One uid for each running lobby, where the platform runs as root and may assign them. The range lies above those of
// distributions, containers and systemd, and below 2^31. No other user may have a uid in it, above all not PostgreSQL's.
export const UID_FIRST = 2_100_000_000
/** Uids in the range, and so lobbies of one machine at once. */
export const UID_COUNT = 65_536
/**
 * The group of an image's root folder where the lobby enters that folder itself. Only lobbies are in it, so no other user of the
 * machine enters.
 */
export const IMAGES_GID = UID_FIRST + UID_COUNT

export type Uids = {
  take(): number
  /** Marks the uid of a run that was taken over as used. */
  reserve(uid: number): void
  release(uid: number): void
}

export function createUids(start: number): Uids {
  const used = new Set<number>()
  let next = start % UID_COUNT
  return {
    /** The free uid that was released longest ago. Throws when all are in use. */
    take() {
      for (let tried = 0; tried < UID_COUNT; tried++) {
        const uid = UID_FIRST + next
        next = (next + 1) % UID_COUNT
        if (used.has(uid)) continue
        used.add(uid)
        return uid
      }
      throw new Error('All uids of lobbies are in use.')
    },
    reserve: (uid) => void used.add(uid),
    release: (uid) => void used.delete(uid),
  }
}
