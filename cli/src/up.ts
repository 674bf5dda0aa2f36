// muster up: from an empty folder to a game that can be played. It writes a project if there is none, finds or starts a platform,
// creates the game and deploys it.
import { deployProject } from './deploy/deploy.ts'
import { createMissingGame } from './deploy/new-game.ts'
import { Guard } from './dev/guard.ts'
import { findOrStartPlatform } from './dev/local-platform.ts'
import { whenEnded } from './dev/when-ended.ts'
import type { GlobalOptions } from './options.ts'
import { readPlatforms, writePlatforms } from './platforms.ts'
import { readProjectAddress } from './project/address.ts'
import { readProject } from './project/project.ts'
import type { Session } from './session.ts'
import { type InitOptions, initProject } from './templates/init.ts'
import type { Terminal } from './terminal.ts'

export type UpOptions = GlobalOptions & InitOptions

/** The context of a platform that the command has started. */
const CONTEXT = 'up'

export async function runUp(terminal: Terminal, options: UpOptions): Promise<void> {
  if (readProjectAddress(terminal.cwd) === null) await initProject(terminal, undefined, options)
  const project = readProject(terminal.cwd)
  const { name: _name, template: _template, ...rest } = options
  const ended = whenEnded(terminal)
  const guard = new Guard()
  const { session, is_own, stop } = await findOrStartPlatform(terminal, rest, project, guard)
  try {
    const named = options.game ?? (terminal.env.GAME_ID || undefined)
    if (named === undefined && project.game !== null) await createMissingGame(terminal, session, project.game)
    const result = await deployProject(terminal, session, project, {})
    if (is_own) await addContext(terminal, session)
    if (terminal.is_json) terminal.json(result)
    if (result.url !== null) terminal.print(`Play: ${result.url}`)
    if (!is_own) return
    terminal.note(
      `The platform ${session.url} runs until Ctrl-C. In another terminal: muster lobbies --context ${CONTEXT}`,
    )
    await ended.promise
    terminal.note('ending the platform; its data stays')
  } finally {
    await stop()
    await guard.close()
  }
}

/** So that other commands reach the platform. The current context stays what it is, if there is one. */
async function addContext({ env }: Terminal, { url, token }: Session): Promise<void> {
  const { current, platforms } = await readPlatforms(env)
  await writePlatforms(env, { current: current ?? CONTEXT, platforms: { ...platforms, [CONTEXT]: { url, token } } })
}
