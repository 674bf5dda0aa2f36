// A roll-out gives a part of the clients of a namespace another version, before all get it. It ends when that version is
// promoted, which deploys it, or rolled back.
import Type from 'typebox'
import { GameId, Id, NamespaceId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { DisplayName, described, object, Timestamp } from '../records.ts'
import { DEPLOY_MESSAGE_LENGTH_MAX } from './namespaces.ts'

/** Failed lobbies without which no limit of a roll-out is passed. */
export const ROLLOUT_FAILURES_MIN = 3
/** Refused finds without which no limit of a roll-out is passed. */
export const ROLLOUT_REFUSALS_MIN = 10

const Percent = (description: string) => Type.Integer({ minimum: 1, maximum: 99, description })

const limits = {
  failed_lobbies_percent_max: Type.Optional(
    Percent(
      `The roll-out is rolled back when more than this part of the lobbies of its version has failed, and at least ${ROLLOUT_FAILURES_MIN} have. Absent: never.`,
    ),
  ),
  refused_finds_percent_max: Type.Optional(
    Percent(
      `The roll-out is rolled back when more than this part of the finds for its version was refused, and at least ${ROLLOUT_REFUSALS_MIN} were. Absent: never.`,
    ),
  ),
}

const RolloutFigures = object(
  {
    version_id: VersionId,
    lobby_count: Type.Integer({ minimum: 0, description: 'Lobbies that were started.' }),
    failed_lobby_count: Type.Integer({
      minimum: 0,
      description:
        'Lobbies of these whose server never became ready, crashed, or ended with an exit code other than 0.',
    }),
    find_count: Type.Integer({ minimum: 0, description: 'Finds that had a result: a seat or a refusal.' }),
    refused_find_count: Type.Integer({
      minimum: 0,
      description:
        'Finds of these that were refused. Refusals that are due to the client, such as a captcha or a limit, are not counted.',
    }),
  },
  'What happened with a version in the namespace since the roll-out began.',
)

export const Rollout = object(
  {
    rollout_id: Id('Id of the roll-out.'),
    version_id: described(VersionId, 'Id of the version that a part of the clients gets.'),
    deployed_version_id: described(VersionId, 'Id of the version that was deployed when the roll-out began.'),
    percent: Percent('Part of the clients that gets the version.'),
    ...limits,
    begin_ts: Timestamp('When the roll-out began.'),
    end_ts: Type.Optional(Timestamp('When it ended. Absent while it is under way.')),
    outcome: Type.Optional(
      Type.Enum(['promoted', 'rolled_back', 'replaced'], {
        description:
          'How it ended. `promoted`: its version was deployed. `rolled_back`: all clients got the deployed version again. `replaced`: another version was deployed or rolled out.',
      }),
    ),
    reason: Type.Optional(
      Type.String({ description: 'Why it ended: the message of the call, or the limit that was passed.' }),
    ),
    figures: object(
      {
        rollout: described(RolloutFigures, 'Figures of the version of the roll-out.'),
        deployed: described(RolloutFigures, 'Figures of the deployed version.'),
      },
      'Both versions side by side.',
    ),
  },
  'A roll-out of a version.',
)

const params = object({ game_id: GameId, namespace_id: NamespaceId })
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const path = '/cloud/games/{game_id}/namespaces/{namespace_id}/rollout'

export const setRollout = operation({
  ...defaults,
  id: 'games.namespaces.setRollout',
  method: 'PUT',
  path,
  summary:
    'Gives a part of the clients a version. A client keeps its version as long as its address and the part stay. For the version of the roll-out under way, the part and the limits change.',
  role: 'developer',
  params,
  body: object({
    version_id: described(VersionId, 'Id of the version. It is not the deployed one.'),
    percent: Percent('Part of the clients that gets the version.'),
    ...limits,
  }),
  response: object({ rollout_id: Id('Id of the roll-out.') }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'VERSION_NOT_FOUND', 'ROLLOUT_VERSION_DEPLOYED'],
})

export const getRollout = operation({
  ...defaults,
  id: 'games.namespaces.getRollout',
  method: 'GET',
  path,
  summary: 'Gets the last roll-out of the namespace, with the figures of both versions.',
  role: 'viewer',
  params,
  response: object({ rollout: Type.Optional(described(Rollout, 'The last roll-out. Absent when there was none.')) }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const endRollout = operation({
  ...defaults,
  id: 'games.namespaces.endRollout',
  method: 'POST',
  path: `${path}/end`,
  summary: 'Ends the roll-out under way: deploys its version, or gives all clients the deployed version again.',
  role: 'developer',
  params,
  body: object({
    outcome: Type.Enum(['promoted', 'rolled_back'], {
      description:
        '`promoted`: deploys the version of the roll-out. `rolled_back`: all clients get the deployed version.',
    }),
    message: Type.Optional(
      described(
        DisplayName(DEPLOY_MESSAGE_LENGTH_MAX),
        'Message for people: at most 500 characters. The history of the namespace keeps that of a promoted version.',
      ),
    ),
  }),
  response: object({ version_id: described(VersionId, 'Id of the version that is deployed now.') }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'ROLLOUT_NOT_UNDER_WAY'],
})
