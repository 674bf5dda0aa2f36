// The game of a project that is deployed for the first time. It is created, so that `muster init` and `muster deploy` are enough.
import { createGame, createGroup, getGames } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** Name of the group that is created for a newcomer, who has none. */
const GROUP_NAME = 'Developers'
/** Groups that an error lists. */
const GROUPS_SHOWN_MAX = 12

/** Creates the game if the caller has none of this name. */
export async function createMissingGame(terminal: Terminal, session: Session, name_id: string): Promise<void> {
  const { client } = session
  const { games, groups } = await client.call(getGames, {})
  if (games.some((game) => game.name_id === name_id || game.game_id === name_id)) return
  if (groups.length > 1) {
    const names = groups.slice(0, GROUPS_SHOWN_MAX).map(({ display_name }) => display_name)
    throw new Failure(`There is no game ${name_id}, and it could belong to several groups: ${names.join(', ')}.`, {
      exit_code: EXIT.usage,
      remedy: `Create it in one of them: muster games create ${name_id} --group GROUP`,
    })
  }
  const group_id =
    groups[0]?.group_id ?? (await client.call(createGroup, { body: { display_name: GROUP_NAME } })).group_id
  await client.call(createGame, { body: { name_id, display_name: name_id, developer_group_id: group_id } })
  terminal.note(`Created the game ${name_id} in the group ${groups[0]?.display_name ?? GROUP_NAME}.`)
}
