// The command around a deploy: the project file, and the result as the last lines or as JSON.
import type { GlobalOptions } from '../options.ts'
import { readProject } from '../project/project.ts'
import { openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { type DeployOptions, deployProject } from './deploy.ts'
import { createMissingGame } from './new-game.ts'
import { checkPreviewOptions } from './preview.ts'
import { checkRolloutOptions } from './rollout.ts'

export async function runDeploy(terminal: Terminal, options: GlobalOptions & DeployOptions): Promise<void> {
  checkPreviewOptions(options)
  checkRolloutOptions(options)
  const project = readProject(terminal.cwd)
  const session = await openSession(terminal, options)
  const named = options.game ?? (terminal.env.GAME_ID || undefined)
  if (named === undefined && project.game !== null) await createMissingGame(terminal, session, project.game)
  const result = await deployProject(terminal, session, project, options)
  if (terminal.is_json) terminal.json(result)
  if (result.url !== null) terminal.print(`Play: ${result.url}`)
  if (result.expire_ts === undefined) return
  terminal.print(`Expires: ${result.expire_ts} (${ago(terminal, result.expire_ts)}). Each deploy prolongs it.`)
}
