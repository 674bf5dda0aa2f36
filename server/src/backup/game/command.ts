// `muster import-game` and `muster restore --game`: what they do, apart from what a person types and sees.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { readConfig } from '../../config/read-config.ts'
import { type BackupLocation, type Outcome, withBackup } from '../command.ts'
import type { LeftOut } from '../manifest.ts'
import { counted, inMegabytes } from '../report.ts'
import type { OpenedBackup } from '../repository.ts'
import { commandLog, withPlatform } from '../with.ts'
import { type GameChoice, type ImportedGame, importGame } from './import-game.ts'
import { unpackGame } from './unpack-game.ts'

/** Imports a game file. Throws a StartError. */
export async function importGameFile(env: NodeJS.ProcessEnv, path: string, choice: GameChoice): Promise<Outcome> {
  const config = readConfig(env)
  const folder = await mkdtemp(join(tmpdir(), 'muster-game-'))
  try {
    const backup = await unpackGame(path, folder)
    return await importInto(config, backup, choice)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Imports one game of a backup of a whole platform. Throws a StartError. */
export async function restoreGame(env: NodeJS.ProcessEnv, where: BackupLocation, choice: GameChoice): Promise<Outcome> {
  const config = readConfig(env)
  return withBackup(config, where, (backup) => importInto(config, backup, choice))
}

async function importInto(config: Config, backup: OpenedBackup, choice: GameChoice): Promise<Outcome> {
  const options = { now: Date.now, log: commandLog() }
  return outcomeOf(await withPlatform(config, (platform) => importGame(platform, backup, choice, options)))
}

function outcomeOf(imported: ImportedGame): Outcome {
  const { name_id, group, create_ts, row_count, object_count, object_bytes, lacking_count, left_out } = imported
  const lines = [
    `The game ${name_id} is here as of ${create_ts}: ${counted(row_count, 'row')}, ${counted(object_count, 'object')} (${inMegabytes(object_bytes)}).`,
    group.is_new
      ? `Its group ${group.display_name} was made, without members: "muster members invite --group ${group.group_id}".`
      : `Its group is ${group.display_name}.`,
    ...(lacking_count === 0
      ? []
      : [`${counted(lacking_count, 'stored file')} of it were lost before. "muster verify" names what needs them.`]),
    ...(left_out === null
      ? ['Tokens and domains are not restored: make tokens again, and add the domains.']
      : leftOutLines(left_out)),
  ]
  return { lines, is_good: lacking_count === 0 }
}

function leftOutLines({ secrets, versions, notice_targets, domains, tokens }: LeftOut): string[] {
  return [
    ...(secrets.length === 0 ? [] : [`Set its secrets again ("muster secrets set"): ${secrets.join(', ')}.`]),
    ...(versions.length === 0
      ? []
      : [`These versions have empty secrets in their configs; deploy them again: ${versions.join(', ')}.`]),
    ...(domains.length === 0 ? [] : [`Add its domains again: ${domains.join(', ')}.`]),
    ...(notice_targets === 0 ? [] : [`Add its ${counted(notice_targets, 'target')} of notices again.`]),
    ...(tokens === 0 ? [] : [`Make its ${counted(tokens, 'token')} again: each platform has its own.`]),
  ]
}
