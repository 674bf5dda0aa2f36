// What commands and the program of backups open for their work, and close after it: a platform, a repository.
import { readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { StartError, startSentence } from '../config/start-error.ts'
import { openObjects } from '../objects/open.ts'
import { ObjectsAway, S3CertificateError, S3Error } from '../objects/s3/client.ts'
import { createLog } from '../observe/log.ts'
import { readCertificateAuthorities } from '../outbound/certificate-authorities.ts'
import { openRepository, type Repository } from './repository.ts'
import { openSource, type Source } from './source.ts'
import type { Platform } from './take.ts'

/** Throws a StartError where there is no platform, or its database does not respond. */
export async function withPlatform<T>(
  config: Config,
  work: (platform: Platform, found: Source['found']) => Promise<T>,
): Promise<T> {
  const { data_dir } = config
  const options = { now_ms: Date.now(), log: commandLog() }
  const source = await explained(config, () => openSource(config, options))
  try {
    const trust = readCertificateAuthorities(config.fetch_authorities)
    const objects = openObjects(config, { now: Date.now, trust })
    try {
      return await work({ client: source.client, objects, data_dir, muster_version: version() }, source.found)
    } finally {
      objects.close()
    }
  } finally {
    await source.close()
  }
}

/** `work_folder` is removed at the end, also when the process exits before. Throws a StartError where the place cannot be used. */
export async function withRepository<T>(
  { s3, fetch_authorities, backup_key: key }: Config,
  location: string,
  work: (repository: Repository, work_folder: string) => Promise<T>,
): Promise<T> {
  const work_folder = await mkdtemp(join(tmpdir(), 'muster-backup-'))
  const clear = (): void => rmSync(work_folder, { recursive: true, force: true })
  process.once('exit', clear)
  try {
    const trust = readCertificateAuthorities(fetch_authorities)
    const repository = await openRepository(location, { s3, key, work_folder, now: Date.now, trust })
    try {
      return await work(repository, work_folder)
    } finally {
      repository.close()
    }
  } catch (error) {
    if (error instanceof S3Error || error instanceof ObjectsAway)
      throw new StartError(sentenceOf(error, location), { cause: error })
    throw error
  } finally {
    process.off('exit', clear)
    await rm(work_folder, { recursive: true, force: true })
  }
}

function sentenceOf(error: S3Error | ObjectsAway, location: string): string {
  if (error instanceof S3Error) return `${location} cannot be used. ${error.message}`
  const { message } = error.cause as Error
  if (error.cause instanceof S3CertificateError) return message
  return `The S3 service of ${location} does not respond (${message}); the command can be repeated.`
}

/** A database that cannot be reached is reported in a sentence, as at a start. */
export async function explained<T>(config: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const sentence = startSentence(error, config)
    if (error instanceof Error && sentence === error.message) throw error
    throw new StartError(sentence, { cause: error })
  }
}

export function commandLog(): Logger {
  return createLog({ who: 'command', level: 'error', to: process.stderr })
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
