// The sections of the reference: operations whose ids begin alike belong together. They are the tags of openapi.json.
import type { Operation } from './operation.ts'

export type Section = { id: string; name: string; description: string }

const TEXTS: Record<string, { name: string; description: string }> = {
  bootstrap: { name: 'Bootstrap', description: 'What a program must know before it can talk to this platform.' },
  tiers: { name: 'Region tiers', description: 'The sizes in which lobbies run.' },
  'auth.identity.email': {
    name: 'Log in by e-mail',
    description: 'A code is sent to an address and logs its owner in.',
  },
  'auth.identity.accessToken': { name: 'Log in by access token', description: "The operator's way in." },
  'auth.tokens': { name: 'Sessions', description: 'From the session in the cookie to the token that operations take.' },
  auth: { name: 'Who am I', description: 'What the credential of a call proves.' },
  identities: { name: 'Identities', description: 'Who has logged in, or plays, and is called what.' },
  'devices.links': {
    name: 'Device links',
    description: 'How a program without a browser is let in: it shows a link, a person opens it and chooses a game.',
  },
  groups: { name: 'Groups', description: 'Who develops games. Each has members with a role; nobody else knows of it.' },
  'groups.invites': { name: 'Invites', description: 'Whoever has the code may join the group.' },
  'groups.billing': { name: 'Billing', description: 'What the lobbies of a group have used.' },
  games: {
    name: 'Games',
    description: 'What a group develops. Everything below the address of a game acts on it only.',
  },
  'games.tokens': { name: 'Cloud tokens', description: 'Each acts for one game: the way in for CI.' },
  'games.namespaces': {
    name: 'Namespaces',
    description:
      'Where a version of a game is played (prod, staging): with players, lobbies, limits, domains and tokens of its own.',
  },
  'games.namespaces.analytics': {
    name: 'Analytics',
    description: 'What happened in namespaces, in numbers over time.',
  },
  'games.versions': {
    name: 'Versions',
    description:
      'A config that names a site, a build, game modes and ports. It never changes, and is put on namespaces.',
  },
  'games.builds': { name: 'Builds', description: 'What a lobby runs.' },
  'games.cdn': {
    name: 'Sites',
    description: 'The files that the CDN serves for the namespaces whose version names them.',
  },
  'games.matchmaker': {
    name: 'Running lobbies',
    description: 'What the developers of a game do to its lobbies and their players, and what lobbies have written.',
  },
  'games.namespaces.logs': {
    name: 'Lobbies that were',
    description: 'Which lobbies a namespace has and had, and the addresses of their logs.',
  },
  logs: { name: 'Rays', description: 'What is known of a request, by the ray id of its answer.' },
  uploads: {
    name: 'Uploads',
    description:
      'Files are prepared, sent by PUT to presigned addresses, and completed. Preparing belongs to what is uploaded: a build, a site.',
  },
  admin: { name: 'Administration', description: 'For the operator of the platform.' },
  lobbies: {
    name: 'Lobbies',
    description: 'A seat in a running game server for a player; and what the game server tells of itself.',
  },
  parties: { name: 'Parties', description: 'Players who are seated together: all of them, or nobody.' },
  'identities.events': { name: 'Events', description: 'What a player is told while he listens.' },
  regions: { name: 'Regions', description: 'Where lobbies run, and how far that is from whoever asks.' },
  kv: { name: 'Entries', description: 'What a game keeps beyond its lobbies: JSON by key, in a namespace.' },
  players: { name: 'Players', description: 'What a lobby server says of the players who come and go.' },
}

/** An id is <section>.<operation>, but of those that stand alone. */
export function sectionId({ id }: Pick<Operation, 'id'>): string {
  const end = id.lastIndexOf('.')
  return end === -1 ? id : id.slice(0, end)
}

export function sectionOf(operation: Pick<Operation, 'id'>): Section {
  const id = sectionId(operation)
  return { id, ...(TEXTS[id] ?? { name: id, description: '' }) }
}

/** In the order in which their first operations are listed. */
export function sectionsOf(operations: readonly Operation[]): Section[] {
  return [...new Map(operations.map((operation) => [sectionId(operation), sectionOf(operation)])).values()]
}
