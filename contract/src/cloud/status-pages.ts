// The status page of a game: whether players get into games now, how that was in the last 90 days, and incidents that people
// write. The edge serves it to players as HTML, JSON and Atom; it is off until the game enables it.
import Type, { type Static } from 'typebox'
import { GameId, Id, NamespaceId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp } from '../records.ts'

/** Incidents of a game, resolved ones among them. */
export const STATUS_INCIDENTS_MAX = 200
/** Updates of one incident. */
export const STATUS_UPDATES_MAX = 50
/** Enabled pages of a platform: the edge keeps each in memory. */
export const STATUS_PAGES_MAX = 500
const TITLE_LENGTH_MAX = 120
/** Characters of the text of a page, and of an update. */
const TEXT_LENGTH_MAX = 2_000
const DOMAIN_LENGTH_MAX = 253

export const STATUS_INCIDENT_STATES = ['investigating', 'identified', 'monitoring', 'resolved'] as const
export const STATUS_IMPACTS = ['none', 'minor', 'major'] as const

/** Plain text: no control characters but line feeds and tabs. */
const TEXT_PATTERN = '^[^\\u0000-\\u0008\\u000b-\\u001f\\u007f\\ufffe\\uffff]*$'
const TITLE_PATTERN = '^[^\\u0000-\\u001f\\u007f\\ufffe\\uffff]*$'

const PageTitle = Type.Optional(
  Type.String({
    maxLength: TITLE_LENGTH_MAX,
    pattern: TITLE_PATTERN,
    description: 'Title of the page. Absent or empty: `Status of ` and the name of the game.',
  }),
)
const PageText = Type.Optional(
  Type.String({
    maxLength: TEXT_LENGTH_MAX,
    pattern: TEXT_PATTERN,
    description: 'Plain text below the title, for example where players get help.',
  }),
)
const PageDomain = Type.Optional(
  Type.String({
    minLength: 3,
    maxLength: DOMAIN_LENGTH_MAX,
    pattern: '^[a-z0-9.-]+$',
    description:
      'Custom domain of the namespace that serves only the page, at `/`. Add it to the namespace first. Absent: the page is at `/status` of each host of the site. Example: `status.arena.example`.',
  }),
)
const IncidentId = Id('Id of the incident.')
const IncidentTitle = Type.String({
  minLength: 1,
  maxLength: TITLE_LENGTH_MAX,
  pattern: TITLE_PATTERN,
  description: 'Title of the incident. Example: `Games in Frankfurt start slowly`.',
})
const IncidentState = Type.Enum([...STATUS_INCIDENT_STATES], {
  description:
    'What is known. `investigating`: the cause is searched. `identified`: it is known. `monitoring`: a fix is in place. `resolved`: it is over.',
})
const IncidentImpact = Type.Enum([...STATUS_IMPACTS], {
  description:
    'What players notice while the incident is open. `none`: nothing. `minor`: the page says that there are problems. `major`: the page says that there is an outage.',
})
const UpdateText = Type.String({
  minLength: 1,
  maxLength: TEXT_LENGTH_MAX,
  pattern: TEXT_PATTERN,
  description: 'What is new, as plain text. The page shows it unchanged: it renders no markup.',
})

export const StatusPage = object(
  {
    is_enabled: Type.Boolean({ description: 'Whether the edge serves the page.' }),
    namespace_id: described(NamespaceId, 'Namespace whose players the page is for.'),
    title: PageTitle,
    text: PageText,
    domain: PageDomain,
    url: Type.String({ description: 'Address of the page. Example: `https://arena.cdn.example.com/status`.' }),
    state: Type.Enum(['operational', 'degraded', 'outage', 'unknown'], {
      description:
        'What the page shows now, without what the edge itself adds while the database is away. `unknown`: nothing was measured in the last minutes.',
    }),
    measured_ts: Type.Optional(Timestamp('End of the last minute that was measured. Absent: none yet.')),
  },
  'The status page of a game. A game that never set one has it disabled.',
)
export type StatusPage = Static<typeof StatusPage>

export const StatusUpdate = object(
  {
    update_id: Id('Id of the update.'),
    state: IncidentState,
    text: UpdateText,
    create_ts: Timestamp('When it was written.'),
  },
  'An update of an incident.',
)

export const StatusIncident = object(
  {
    incident_id: IncidentId,
    title: IncidentTitle,
    state: IncidentState,
    impact: IncidentImpact,
    create_ts: Timestamp('When it was written.'),
    resolve_ts: Type.Optional(Timestamp('When it was resolved. Absent: it is open.')),
    updates: Type.Array(StatusUpdate, { description: `Updates, newest first, at most ${STATUS_UPDATES_MAX}.` }),
  },
  'An incident that people wrote.',
)
export type StatusIncident = Static<typeof StatusIncident>

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const path = '/cloud/games/{game_id}/status-page'
const of_game = { params: object({ game_id: GameId }), errors: ['GAME_NOT_FOUND'] } as const
const of_incident = {
  params: object({ game_id: GameId, incident_id: IncidentId }),
  errors: ['GAME_NOT_FOUND', 'STATUS_INCIDENT_NOT_FOUND'],
} as const

export const getStatusPage = operation({
  ...defaults,
  params: object({ game_id: GameId }),
  id: 'games.status.getStatusPage',
  method: 'GET',
  path,
  summary: 'Returns the settings of the status page of a game, and what it shows now.',
  role: 'viewer',
  response: object({ status_page: StatusPage }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const putStatusPage = operation({
  ...defaults,
  params: object({ game_id: GameId }),
  id: 'games.status.putStatusPage',
  method: 'PUT',
  path,
  summary: 'Enables or disables the status page, and replaces its settings. Players see the change within seconds.',
  role: 'developer',
  body: object({
    is_enabled: Type.Boolean({ description: 'Whether the edge serves the page.' }),
    namespace_id: Type.Optional(
      described(NamespaceId, 'Namespace of the page. Absent: `prod`, or the oldest one of a game without it.'),
    ),
    title: PageTitle,
    text: PageText,
    domain: PageDomain,
  }),
  response: object({ status_page: StatusPage }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const listStatusIncidents = operation({
  ...defaults,
  ...of_game,
  id: 'games.status.listStatusIncidents',
  method: 'GET',
  path: `${path}/incidents`,
  summary: `Lists the incidents of a game with their updates: open ones, then resolved ones, newest first. There are at most ${STATUS_INCIDENTS_MAX}.`,
  role: 'viewer',
  response: object({ incidents: Type.Array(StatusIncident, { description: 'The incidents.' }) }),
})

export const createStatusIncident = operation({
  ...defaults,
  ...of_game,
  id: 'games.status.createStatusIncident',
  method: 'POST',
  path: `${path}/incidents`,
  summary: 'Writes an incident with its first update. An enabled page shows it at once.',
  role: 'developer',
  body: object({
    title: IncidentTitle,
    impact: IncidentImpact,
    state: Type.Optional(described(IncidentState, 'What is known. Default: `investigating`.')),
    text: UpdateText,
  }),
  response: object({ incident_id: IncidentId }),
})

export const updateStatusIncident = operation({
  ...defaults,
  ...of_incident,
  id: 'games.status.updateStatusIncident',
  method: 'POST',
  path: `${path}/incidents/{incident_id}/updates`,
  summary:
    'Writes an update of an incident, and its new state. `resolved` ends it; another state opens a resolved one again.',
  role: 'developer',
  body: object({
    state: IncidentState,
    text: UpdateText,
    title: Type.Optional(described(IncidentTitle, 'New title. Absent: it stays.')),
    impact: Type.Optional(described(IncidentImpact, 'New impact. Absent: it stays.')),
  }),
  response: object({ update_id: Id('Id of the update.') }),
})

export const deleteStatusIncident = operation({
  ...defaults,
  ...of_incident,
  id: 'games.status.deleteStatusIncident',
  method: 'DELETE',
  path: `${path}/incidents/{incident_id}`,
  summary: 'Deletes an incident with its updates, also from the page. Resolve it to keep it there.',
  role: 'developer',
  response: Empty,
})
