// muster rollback: puts a version that worked back into use. It changes which version new lobbies run, and nothing else.
import { updateGameNamespaceVersion } from '@musterhost/contract'
import { changeLines, changesBetween } from '@musterhost/contract/differences'
import { readableConfig } from '@musterhost/contract/readable-config'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { rollBackRollout } from './rollout.ts'
import { findLastWorking, findVersion, readVersion, readVersions } from './versions.ts'

export type RollbackOptions = { message?: string; yes?: boolean }

/** `wanted` undefined: ends the roll-out under way, or puts back the last version that worked. */
export async function rollBack(
  terminal: Terminal,
  session: Session,
  wanted: string | undefined,
  options: RollbackOptions,
): Promise<void> {
  if (wanted === undefined && (await rollBackRollout(terminal, session, options))) return
  const game = await session.game()
  const namespace = await session.namespace()
  const current_id = (await session.gameFull()).namespaces.find(
    ({ namespace_id }) => namespace_id === namespace.namespace_id,
  )?.version_id
  if (current_id === undefined) throw new Failure(`The namespace ${namespace.name_id} was deleted a moment ago.`)
  const current = await readVersion(session, current_id)
  const target =
    wanted === undefined
      ? await findLastWorking(session)
      : await readVersion(session, findVersion(await readVersions(session), wanted).version_id)
  if (target.version_id === current_id) {
    throw new Failure(`${namespace.name_id} runs version ${target.display_name} already.`, { exit_code: EXIT.usage })
  }
  terminal.note(
    `Rolling back ${game.name_id} on ${namespace.name_id}, ${session.url}: ${current.display_name} -> ${target.display_name}`,
  )
  for (const line of changeLines(changesBetween(readableConfig(current.config), readableConfig(target.config)))) {
    terminal.note(`  ${line}`)
  }
  terminal.note(`Not rolled back: stored data (kv), limits, domains and users of the namespace.`)
  terminal.note(`Lobbies of ${current.display_name} play on until they end; new players get ${target.display_name}.`)
  if (options.yes !== true && !(await terminal.confirm(`Roll back ${namespace.name_id}?`, '--yes'))) {
    throw new Failure('Nothing was changed.')
  }
  const begin_ms = performance.now()
  const params = { game_id: game.game_id, namespace_id: namespace.namespace_id }
  const message = options.message ?? `Rollback from ${current.display_name}`
  await session.client.call(updateGameNamespaceVersion, {
    params,
    body: { version_id: target.version_id, message, is_rollback: true },
  })
  const duration_ms = Math.round(performance.now() - begin_ms)
  terminal.note(`${namespace.name_id} runs version ${target.display_name} from now on (${duration_ms} ms).`)
  if (terminal.is_json) {
    const { version_id, display_name } = target
    terminal.json({ ...params, version_id, display_name, previous_version_id: current_id, message, duration_ms })
  }
}
