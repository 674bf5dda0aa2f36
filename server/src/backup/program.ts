// The program of backups by a schedule: a process of its own, with a low priority, so that encryption and hashes delay no
// request of the api. It reads a BackupWork as JSON from its standard input, and writes a BackupReply to its standard output.
// Instead of the reply, the task `pack_game` writes the game file. When it fails, it ends with 1 and a sentence at standard error.
import { mkdtemp, rm } from 'node:fs/promises'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import type { KeepRule } from '../text/keep-rule.ts'
import { type GameChoice, importGame } from './game/import-game.ts'
import { packGame } from './game/pack-game.ts'
import { listBackups, openBackup, type Repository } from './repository.ts'
import { restoreBackup } from './restore.ts'
import { type BackupRound, backUpOnce } from './round.ts'
import { commandLog, withPlatform, withRepository } from './with.ts'

/** `folder`: an absolute path, which becomes the data folder of the restored platform. */
export type BackupTask =
  | { kind: 'back_up' }
  | { kind: 'list' }
  | { kind: 'restore'; name: string; folder: string }
  /** Into the platform that runs. */
  | { kind: 'restore_game'; name: string; choice: GameChoice }
export type PackTask = { kind: 'pack_game'; game_id: string }
export type BackupWork = { task: BackupTask | PackTask; config: Config }
export type BackupReply =
  | { kind: 'backed_up'; round: BackupRound }
  /** In the order of time. */
  | { kind: 'listed'; names: string[] }
  | { kind: 'restored' }
  /** A sentence with the remedy. */
  | { kind: 'failed'; message: string }

// What runs at an exit removes the folder of this process.
process.once('SIGTERM', () => process.exit(1))
const { task, config } = (await json(process.stdin)) as BackupWork
// The lowest would let it starve on a machine whose lobbies use all cores.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
if (task.kind === 'pack_game') await writeGame(task, config)
else process.stdout.write(JSON.stringify(await replyTo(task, config)))

async function writeGame({ game_id }: PackTask, config: Config): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-game-'))
  try {
    await withPlatform(config, async (platform) => pipeline(await packGame(platform, game_id, folder), process.stdout))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function replyTo(task: BackupTask, config: Config): Promise<BackupReply> {
  const { backups } = config
  if (backups === null) return { kind: 'failed', message: 'MUSTER_BACKUP_TO is not set.' }
  try {
    return await withRepository(config, backups.to, (repository, work_folder) =>
      carryOut(task, { config, keep: backups.keep, repository, work_folder }),
    )
  } catch (error) {
    if (error instanceof StartError) return { kind: 'failed', message: error.message }
    const { code, syscall, message } = error as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw error
    return { kind: 'failed', message: `${backups.to} cannot be used: ${message}.` }
  }
}

type Parts = { config: Config; keep: KeepRule; repository: Repository; work_folder: string }

async function carryOut(task: BackupTask, { config, keep, repository, work_folder }: Parts): Promise<BackupReply> {
  if (task.kind === 'list') {
    const finished = (await listBackups(repository)).filter(({ is_finished }) => is_finished)
    return { kind: 'listed', names: finished.map(({ name }) => name) }
  }
  if (task.kind === 'restore') {
    const backup = await openBackup(repository, task.name, join(work_folder, 'backup'))
    const target = { ...config, data_dir: task.folder, database_url: null }
    await restoreBackup(target, backup, { now: Date.now, log: commandLog() })
    return { kind: 'restored' }
  }
  if (task.kind === 'restore_game') {
    const backup = await openBackup(repository, task.name, join(work_folder, 'backup'))
    const options = { now: Date.now, log: commandLog() }
    await withPlatform(config, (platform) => importGame(platform, backup, task.choice, options))
    return { kind: 'restored' }
  }
  const round = await withPlatform(config, (platform) =>
    backUpOnce(platform, repository, { work_folder, keep, now: Date.now }),
  )
  return { kind: 'backed_up', round }
}
