// The version of this program, from its package, and how a person runs the command `muster` of it.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Only a checkout has it. */
const BUILD_SCRIPT = fileURLToPath(new URL('../../../scripts/build.ts', import.meta.url))
const IS_CHECKOUT = existsSync(BUILD_SCRIPT)

export function platformVersion(): string {
  const { version } = JSON.parse(
    readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
  ) as {
    version: string
  }
  return version
}

/** How a person runs the command `muster` of this program, at the place that it runs from. */
export function ownCommand(): string {
  return IS_CHECKOUT ? 'npm run muster --' : 'npx musterhost'
}

/** The folder with the command `muster` of this checkout, for the PATH of a shell. Null: this program is no checkout. */
export function commandFolder(): string | null {
  return IS_CHECKOUT ? join(dirname(dirname(BUILD_SCRIPT)), 'node_modules', '.bin') : null
}
