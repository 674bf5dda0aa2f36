// One uid for each lobby that runs, where the platform runs as root and may give them away. The range lies above those of
// distributions, containers and systemd, and below 2^31; nothing else may be in it, least of all PostgreSQL's user.
export const UID_FIRST = 2_100_000_000
export const UID_COUNT = 65_536

export type Uids = { take(): number; hold(uid: number): void; release(uid: number): void }

export function createUids(start: number): Uids {
  const used = new Set<number>()
  let next = start % UID_COUNT
  return {
    /** The one that was used longest ago. Throws when all are in use. */
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
    hold: (uid) => void used.add(uid),
    release: (uid) => void used.delete(uid),
  }
}
