// The programs that tests start as processes. A whole run builds them as a checkout has them in dist/programs, since tests
// start them hundreds of times: the command then starts in a quarter of the time that its sources take, and the platform in
// half. A run of a few files starts the sources.
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writePrograms } from '../../../scripts/package/packages.ts'

const ROOT = join(import.meta.dirname, '../../..')
/** The environment variable with the folder of the built programs. */
export const PROGRAMS_VARIABLE = 'TEST_PROGRAMS'

/** The command `muster`. */
export const MUSTER = builtOr('muster.js', 'cli/src/main.ts')
/** The roles in one process, without a supervisor. */
export const ROLE_PROGRAM = builtOr('role.js', 'server/src/main.ts')
/** Puts the arena on a platform. */
export const DEPLOY_EXAMPLE = builtOr('deploy-example.js', 'examples/arena/deploy.ts')

/** Builds the programs below a new folder, and returns their own. */
export async function buildPrograms(folder: string): Promise<string> {
  await writePrograms(ROOT, folder)
  // Without it Node looks into each module for its format, which takes a tenth of a start.
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'dist')
}

function builtOr(name: string, source: string): string {
  const folder = process.env[PROGRAMS_VARIABLE]
  return folder === undefined ? join(ROOT, source) : join(folder, name)
}
