// Removes old backups of a repository, and the objects that no other backup names. The caller holds the turn of backups, so no
// backup relies on an object meanwhile. A manifest is removed first: a backup without one is not finished.
import { text } from 'node:stream/consumers'
import { StartError } from '../config/start-error.ts'
import { type KeepRule, keptBackups } from '../text/keep-rule.ts'
import { MANIFEST_FILE, objectFile, SUMS_FILE } from './manifest.ts'
import { listBackups, type Repository } from './repository.ts'

export type Pruned = { backup_count: number; object_count: number }

/** Keeps the finished backups that the rule keeps. */
export async function pruneBackups(repository: Repository, rule: KeepRule | number): Promise<Pruned> {
  const backups = await listBackups(repository)
  const finished = backups.filter(({ is_finished }) => is_finished)
  const kept_names = keptBackups(
    finished.map(({ name }) => name),
    rule,
  )
  const kept = finished.filter(({ name }) => kept_names.has(name))
  const latest = kept.at(-1)
  if (latest === undefined) return { backup_count: 0, object_count: 0 }
  const surplus = backups.filter((backup) => !kept.includes(backup) && backup.name < latest.name)
  if (surplus.length === 0) return { backup_count: 0, object_count: 0 }
  const named = new Set<string>()
  for (const { name } of backups.filter((backup) => !surplus.includes(backup))) {
    for (const path of await namedPaths(repository, name)) named.add(path)
  }
  for (const { name, paths } of surplus) {
    const in_order = [...paths].sort((one, other) => Number(other === MANIFEST_FILE) - Number(one === MANIFEST_FILE))
    for (const path of in_order) await repository.remove(`${name}/${path}`)
  }
  let object_count = 0
  for await (const object_key of repository.objectKeys()) {
    if (named.has(objectFile(object_key))) continue
    await repository.objects.delete(object_key)
    object_count++
  }
  return { backup_count: surplus.length, object_count }
}

/** The paths that SHA256SUMS of a backup names. Throws a StartError when it cannot be read: then nothing is removed. */
async function namedPaths(repository: Repository, name: string): Promise<string[]> {
  const sums = await repository.read(`${name}/${SUMS_FILE}`)
  if (sums === null) throw new StartError(`The backup ${name} has no ${SUMS_FILE}; nothing has been removed.`)
  return (await text(sums)).split('\n').map((line) => line.slice(66))
}
