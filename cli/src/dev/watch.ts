// Notices changes in a folder, without the files that an upload leaves out. Many changes at once are one.
import { watch } from 'node:fs'
import { sep } from 'node:path'
import type { IgnoreRules } from '../deploy/ignore-rules.ts'

/** Changes within this time are one: editors write a file several times. */
const QUIET_MS = 150

/** `onChange` gets the first changed path. Returns what ends it. */
export function watchFolder(
  folder: string,
  rules: IgnoreRules,
  onChange: (path: string) => void,
  onError: (error: Error) => void,
): () => void {
  let timer: NodeJS.Timeout | null = null
  let first = ''
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    if (name === null) return
    const path = name.split(sep).join('/')
    if (path === '' || rules.isIgnored(path, false)) return
    if (timer === null) first = path
    else clearTimeout(timer)
    timer = setTimeout(() => {
      timer = null
      onChange(first)
    }, QUIET_MS)
  })
  watcher.on('error', onError)
  return () => {
    watcher.close()
    if (timer !== null) clearTimeout(timer)
  }
}
