// Recognises the platform's tokens in a text by their form, without verifying them. It is for code that keeps credentials
// away from someone: an expired token and one with a wrong signature are kept away too.
import { decodeClaims, KINDS, type Kind } from './claims.ts'

const LABELS = Object.values(KINDS).map(({ label, named }) => (named ? `${label}_[a-z0-9_]+` : label))
/** `label.header.claims.signature`, at the start of the text or after a character that no token has. */
const TOKEN = new RegExp(`(?<![A-Za-z0-9_.-])(?:${LABELS.join('|')})\\.[\\w-]+\\.([\\w-]+)\\.[\\w-]+`, 'g')

/** Kinds that a player hands to the lobby's server: they let nobody call the platform. */
const FOR_LOBBIES: ReadonlySet<Kind> = new Set(['player', 'dev_player'])

/** Whether a token in `text` lets its holder call the platform, or might: its claims decide, not its label. */
export function hasCredential(text: string): boolean {
  return text.matchAll(TOKEN).some(([, claims]) => {
    const token = decodeClaims(Buffer.from(claims!, 'base64url'))
    return token === null || !FOR_LOBBIES.has(token.kind)
  })
}
