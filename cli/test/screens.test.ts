// Every command of the program has a screen that was kept, or a reason to have none.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { listCommands } from '../src/completion/commands.ts'
import { createProgram } from '../src/program.ts'
import { ProcessTerminal } from '../src/terminal.ts'
import { SCREENS } from './screens.ts'
import { CONTEXT_STEPS, MANAGE_STEPS } from './screens-manage.ts'
import { OPERATE_STEPS, PROJECT_STEPS } from './screens-operate.ts'
import { WATCH_STEPS } from './screens-watch.ts'

/** deploy.test.ts compares these: each shows the deploys before it. */
const DEPLOY_SCREENS = ['deploy', 'deploy-changed', 'versions', 'diff', 'rollback']

const WITHOUT_SCREEN: Readonly<Record<string, string>> = {
  allocator: 'It serves until it is ended. allocator.test.ts calls it.',
  'config-schema': 'It prints a file for editors. project.test.ts compares the file with the contract.',
  'games-export': 'It writes a file. server/test/backup/game.test.ts imports what it writes.',
  'import-game': 'It needs a file of a game. server/test/backup/game.test.ts imports one.',
  'player-data-export': 'It writes a file. server/test/cloud/player-data.test.ts reads one.',
  'player-data-erase': 'It needs a player who has left. server/test/cloud/player-data.test.ts erases one.',
  'player-data-erasures': 'It needs an erasure. server/test/cloud/player-data.test.ts lists one.',
  'keys-backup': 'It prints another key each time. backup/schedule.long.test.ts uses one.',
  'matching-import': 'It prints JSON for a version config. matching-import.test.ts reads what it makes.',
  'matching-try': 'It plays a file of players. contract/src/matching/play.test.ts compares the matches.',
  'ratings-list': 'It needs rated matches. commands.test.ts runs it.',
  'ratings-show': 'It needs rated matches. commands.test.ts runs it.',
  'ratings-reset': 'It needs rated matches. commands.test.ts runs it.',
  'ratings-export': 'It prints a file. commands.test.ts runs it.',
  rollout: 'It needs a roll-out under way. deploy.test.ts reads what it prints.',
  promote: 'It needs a roll-out under way. deploy.test.ts reads what it prints.',
  completion: 'It prints a script for shells. completion.test.ts runs the script.',
  join: 'It needs a platform on another machine. server/test/links/second-machine.long.test.ts runs it.',
  upgrade:
    'It changes a platform to another version. server/test/end-to-end/upgrade.long.test.ts reads what it prints.',
  restart: 'It replaces the processes of a platform. server/test/supervisor/restart.test.ts runs it.',
  'lobbies-list': 'It prints the screen of lobbies, by the longer name. histories.test.ts runs it.',
  'sign-in-providers-check': 'It calls an issuer. server/test/identity/providers.test.ts calls its operation.',
  mcp: 'An agent reads it, and no person. mcp.test.ts drives it with the official client.',
}

test('every command has a screen, on a terminal and without one', () => {
  const steps = [...MANAGE_STEPS, ...CONTEXT_STEPS, ...WATCH_STEPS, ...PROJECT_STEPS, ...OPERATE_STEPS]
  const shown = [...steps.map(({ name }) => name), ...DEPLOY_SCREENS]
  assert.equal(new Set(shown).size, shown.length, 'a name has one screen')
  const commands = listCommands(createProgram(new ProcessTerminal({})))
    .filter(({ path, children }) => path !== '' && children.length === 0)
    .map(({ path }) => path.replaceAll(' ', '-'))
  assert.ok(commands.length > 60)
  const missing = commands.filter((name) => !shown.includes(name) && !Object.hasOwn(WITHOUT_SCREEN, name))
  assert.deepEqual(missing, [], 'add a step for these in cli/test/screens-*.ts')
  assert.deepEqual(
    Object.keys(WITHOUT_SCREEN).filter((name) => !commands.includes(name) || shown.includes(name)),
    [],
  )
  const kept = readdirSync(SCREENS).map((file) => file.replace(/\.txt$/, ''))
  assert.deepEqual(kept.sort(), shown.sort(), 'the files of cli/test/screens')
})
