// Recognises the platform's tokens in a text by their form, without verifying them. It is for code that redacts
// credentials: expired tokens and those with a wrong signature are redacted too.
import { decodeClaims, KINDS, type Kind } from './claims.ts'

const LABELS = Object.values(KINDS).map(({ label, named }) => (named ? `${label}_[a-z0-9_]+` : label))
/** `label.header.claims.signature`, at the start of the text or after a character that no token contains. */
const TOKEN = new RegExp(`(?<![A-Za-z0-9_.-])(?:${LABELS.join('|')})\\.[\\w-]+\\.([\\w-]+)\\.[\\w-]+`, 'g')

/** Kinds that a player sends to the lobby's server. With them no client can call the platform. */
const FOR_LOBBIES: ReadonlySet<Kind> = new Set(['player', 'dev_player'])

/** Whether `text` contains a token with which its holder may call the platform. The claims decide, not the label. */
export function hasCredential(text: string): boolean {
  return text.matchAll(TOKEN).some(([, claims]) => {
    const token = decodeClaims(Buffer.from(claims!, 'base64url'))
    return token === null || !FOR_LOBBIES.has(token.kind)
  })
}
