// Builds for tests: a handful of files, packed and uploaded as a developer would.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { completeUpload, createGameBuild } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import tar from 'tar-stream'

/**
 * The smallest lobby server: reports that it is ready, and runs until it is stopped. Servers of the tests do not import node:http:
 * Node would then load its WebSocket and fetch too, which takes a process 0.1 s more.
 */
export const LEAST_SERVER = `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
http.createServer((_, answer) => answer.end('lobby')).listen(Number(PORT_GAME ?? 0), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`

export async function tarGz(files: Record<string, string>): Promise<Buffer> {
  const pack = tar.pack()
  for (const [name, text] of Object.entries(files)) pack.entry({ name }, text)
  pack.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of pack) chunks.push(chunk as Buffer)
  return gzipSync(Buffer.concat(chunks))
}

/** Returns the build's id. `archive`: what is uploaded in place of the packed files. `api_url`: presigned addresses lead to the edge, which need not run in every test. */
export async function uploadBuild(
  client: Client,
  options: { api_url: string; game_id: string; files: Record<string, string>; archive?: Buffer },
): Promise<string> {
  const bytes = options.archive ?? (await tarGz(options.files))
  const build = await client.call(createGameBuild, {
    params: { game_id: options.game_id },
    body: {
      display_name: 'Build',
      image_tag: `server:${randomUUID()}`,
      image_file: { path: 'server.tar.gz', content_length: bytes.length },
    },
  })
  const { pathname, search } = new URL(build.image_presigned_request!.url)
  const response = await fetch(`${options.api_url}${pathname}${search}`, { method: 'PUT', body: new Uint8Array(bytes) })
  assert.equal(response.status, 200, await response.text())
  await client.call(completeUpload, { params: { upload_id: build.upload_id } })
  return build.build_id
}
