// The names in the certificates of the platform's own processes, and how long these are valid.

export type ProcessRole = 'api' | 'matchmaker' | 'edge'

const SUFFIX = '.process.muster.internal'
const HOUR_MS = 60 * 60_000
/** A process renews its certificate when half of this time is over. */
export const CERTIFICATE_LIFETIME_MS = 24 * HOUR_MS

export function nameOfProcess(role: ProcessRole): string {
  return `${role}${SUFFIX}`
}

/** The role that the subject of a certificate names; null: it is not that of a process. */
export function roleOfSubject(subject: string): string | null {
  const name = /^CN=([^\n]+)$/.exec(subject)?.[1]
  return name?.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : null
}
