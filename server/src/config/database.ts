// The addresses of an external PostgreSQL.
import { readFileSync } from 'node:fs'
import { databaseUrlMistake, tlsFilesOf } from '../text/database-url.ts'
import type { Config } from './config.ts'
import type { SettingsReader } from './read.ts'

export function readDatabase(read: SettingsReader): Pick<Config, 'database_url' | 'database_listen_url'> {
  const database_url = readDatabaseUrl(read, 'DATABASE_URL')
  const database_listen_url = readDatabaseUrl(read, 'MUSTER_DATABASE_LISTEN_URL')
  if (database_url === null && database_listen_url !== null) {
    read.mistakes.push('MUSTER_DATABASE_LISTEN_URL needs DATABASE_URL, of the same PostgreSQL.')
  }
  return { database_url, database_listen_url }
}

/** The driver reads addresses that are no URLs, such as those of a unix socket. */
function readDatabaseUrl(read: SettingsReader, name: 'DATABASE_URL' | 'MUSTER_DATABASE_LISTEN_URL'): string | null {
  const value = read.textOrNull(name)
  const mistake = value === null ? null : databaseUrlMistake(value)
  if (mistake !== null) read.mistakes.push(`${name} ${mistake}`)
  for (const { parameter, path } of value === null ? [] : tlsFilesOf(value)) {
    try {
      readFileSync(path)
    } catch (error) {
      read.mistakes.push(`${name} has ${parameter}=${path}, which cannot be read (${(error as Error).message}).`)
    }
  }
  return value
}
