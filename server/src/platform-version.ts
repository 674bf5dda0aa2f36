// The version of this program, from its package.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function platformVersion(): string {
  const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../package.json', import.meta.url)), 'utf8')) as {
    version: string
  }
  return version
}
