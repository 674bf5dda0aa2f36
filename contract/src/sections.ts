// The sections of the reference, which are the tags of openapi.json. Operations whose ids have the same prefix form a section.
import type { Operation } from './operation.ts'

export type Section = { id: string; name: string; description: string }

const TEXTS: Record<string, { name: string; description: string }> = {
  bootstrap: { name: 'Bootstrap', description: 'Facts about the platform that need no credential.' },
  tiers: { name: 'Region tiers', description: 'The sizes of lobbies.' },
  'auth.identity.email': {
    name: 'Log in by e-mail',
    description: 'The platform sends a code to an e-mail address, and the code logs the person in.',
  },
  'auth.identity.accessToken': { name: 'Log in by access token', description: 'Log-in of the operator.' },
  'auth.identity.link': {
    name: 'Log in by link',
    description: 'A link signs an administrator in once.',
  },
  'auth.identity.provider': {
    name: 'Log in by a provider',
    description: 'Log-in of people with an account elsewhere, by OpenID Connect.',
  },
  'auth.identity.passkey': {
    name: 'Log in by passkey',
    description: 'Log-in of people with a passkey alone, by WebAuthn.',
  },
  'auth.passkeys': { name: 'Own passkeys', description: 'The passkeys with which a person signs in and confirms.' },
  'auth.confirmation': {
    name: 'Confirmation',
    description: 'A second confirmation, with a passkey, before operations that destroy.',
  },
  signInProviders: {
    name: 'Providers of sign-ins',
    description: 'Where people sign in with an account elsewhere, and which roles their groups there give.',
  },
  'auth.sessions': { name: 'Own sessions', description: 'Where a person is logged in.' },
  'auth.tokens': {
    name: 'Sessions',
    description: 'Exchange the session cookie for the user token that operations accept.',
  },
  auth: { name: 'Who am I', description: 'What the credential of a call proves.' },
  identities: { name: 'Identities', description: 'Users and players, and their names.' },
  'devices.links': {
    name: 'Device links',
    description:
      'Credentials for programs without a browser: the program shows a link, and a person opens it and chooses a game.',
  },
  overview: { name: 'Overview', description: 'What is wrong and what runs, over all groups and games of a person.' },
  notices: {
    name: 'Notices',
    description: 'Messages about what happens, to a chat, a phone, a mailbox or a program.',
  },
  groups: {
    name: 'Groups',
    description: 'Developers of games. Each group has members with roles, and is visible to its members only.',
  },
  'groups.invites': { name: 'Invites', description: 'Codes with which users join a group.' },
  'groups.billing': { name: 'Billing', description: 'Core time that the lobbies of a group used.' },
  games: {
    name: 'Games',
    description: 'Games of a group. Every operation below the address of a game acts on this game only.',
  },
  'games.tokens': { name: 'Cloud tokens', description: 'Credentials that act for one game. Use them in CI.' },
  'games.namespaces': {
    name: 'Namespaces',
    description:
      'Environments of a game, such as prod and staging. Each has its own version, players, lobbies, limits, domains and tokens.',
  },
  'games.namespaces.analytics': {
    name: 'Analytics',
    description: 'Numbers about namespaces over time.',
  },
  'games.schedules': {
    name: 'Schedules',
    description: 'What happens in a namespace at planned times: idle lobbies, announcements, restarts and drains.',
  },
  'games.secrets': {
    name: 'Secrets',
    description: 'Environment variables of lobbies whose values no operation returns.',
  },
  'games.status': {
    name: 'Status page',
    description: 'The page that shows players whether they get into games, and its incidents.',
  },
  'games.versions': {
    name: 'Versions',
    description:
      'A version is a config that names a site, builds, game modes and ports. It never changes, and is deployed to namespaces.',
  },
  'games.builds': { name: 'Builds', description: 'Programs that lobbies run.' },
  'games.cdn': {
    name: 'Sites',
    description: 'Files that the CDN serves. A version names its site.',
  },
  'games.matchmaker': {
    name: 'Running lobbies',
    description: 'Stop lobbies, remove players, drain versions, and read the logs of lobbies.',
  },
  'games.namespaces.logs': {
    name: 'Lobbies that were',
    description: 'Running and stopped lobbies of a namespace, with their metrics and logs.',
  },
  logs: { name: 'Rays', description: 'Timings and explanations of a request, by the ray id of its response.' },
  uploads: {
    name: 'Uploads',
    description:
      'An upload has three steps: prepare it with a build, site or picture; send each file by PUT to its presigned URL; complete it.',
  },
  admin: { name: 'Administration', description: 'For the operator of the platform.' },
  nodes: { name: 'Nodes', description: 'The machines of the platform: their load, and taking one out of service.' },
  lobbies: {
    name: 'Lobbies',
    description: 'Seats in running game servers for players, and the reports of game servers about themselves.',
  },
  parties: { name: 'Parties', description: 'Groups of players who get seats in the same lobby: all of them, or none.' },
  'identities.events': {
    name: 'Events',
    description: 'Events that a player receives, such as the seat that the leader of a party requested.',
  },
  regions: { name: 'Regions', description: 'Where lobbies run, and how far away that is from the client.' },
  kv: { name: 'Entries', description: 'Key-value storage of a namespace: JSON values that outlive lobbies.' },
  ratings: {
    name: 'Ratings',
    description: 'How strong players are in each game mode, computed from the results that lobby servers report.',
  },
  players: {
    name: 'Players',
    description: 'Reports of lobby servers about players who connect and disconnect, and player counts.',
  },
}

/** The part of the id before its last dot. An id without a dot is its own section. */
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
