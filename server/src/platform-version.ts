// The version of this program, from its package.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Only a checkout has it. */
const IS_CHECKOUT = existsSync(new URL('../../scripts/build.ts', import.meta.url))

export function platformVersion(): string {
  const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../package.json', import.meta.url)), 'utf8')) as {
    version: string
  }
  return version
}

/** How a person runs the command `muster` of this program, at the place that it runs from. */
export function ownCommand(): string {
  return IS_CHECKOUT ? 'npm run muster --' : 'npx musterhost'
}
