// The command as its package has it, for the tests that run it hundreds of times. It starts in a quarter of the processor
// time that its hundred modules take. The platform is not in it: its commands load that from the checkout.
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { writeCommandPackage } from '../../scripts/package/packages.ts'

/** The environment variable with the path of the program, which tests run in place of cli/src/main.ts. */
export const COMMAND_VARIABLE = 'TEST_COMMAND'

/** Writes the package into a new folder, and returns the path of its program. `root`: the checkout. */
export async function buildCommand(root: string, folder: string): Promise<string> {
  await writeCommandPackage(root, folder, { has_platform: true, server_package: '@musterhost/server' })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'dist/muster.js')
}
