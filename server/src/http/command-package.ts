// The package of the command `muster`, of the version of this platform: `npm install --global http://PLATFORM/cli.tgz`. A packed
// platform has it as a file. A checkout makes it at the first request, and again when a source has changed since the last start.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'

const COMMAND_PACKAGE_PATH = '/cli.tgz'
const FILE = new URL('../../../cli/dist/cli.tgz', import.meta.url)
/** Only a checkout has it. */
const PROGRAM = fileURLToPath(new URL('../../../scripts/pack-command.ts', import.meta.url))
/** It takes a second. */
const BUILD_MS_MAX = 120_000

type CommandPackage = { bytes: Buffer; etag: string }

export function registerCommandPackage(app: FastifyInstance, ctx: Context): void {
  let made: Promise<CommandPackage> | null = null

  app.get(COMMAND_PACKAGE_PATH, async (request, reply) => {
    made ??= make()
    let file: CommandPackage
    try {
      file = await made
    } catch (error) {
      // The next request tries again.
      made = null
      ctx.log.warn({ err: error }, 'the package of the command could not be made')
      return reply.callNotFound()
    }
    reply.headers({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', etag: file.etag })
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send()
    return reply.type('application/gzip').send(file.bytes)
  })
}

async function make(): Promise<CommandPackage> {
  if (existsSync(PROGRAM)) {
    try {
      await promisify(execFile)(process.execPath, [PROGRAM, '--when-stale'], { timeout: BUILD_MS_MAX })
    } catch (error) {
      // An installation without development packages has the file that was made for it.
      if (!existsSync(FILE)) throw error
    }
  }
  const bytes = await readFile(FILE)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
