// Whatever is uploaded arrives by a presigned address, and each kind of address is tried with everything that a sender
// could change of it: nobody gets anything in but the bytes that were prepared, once, until the upload is complete.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { globSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  completeUpload,
  createGameBuild,
  createGameCdnSite,
  type ErrorCode,
  gameBannerUploadComplete,
  gameBannerUploadPrepare,
  gameLogoUploadComplete,
  gameLogoUploadPrepare,
} from '@musterhost/contract'
import { PNG } from '../../support/images.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { apiAddress, buildBody, newGame, type Presigned, refused, tarGz } from '../steps.ts'

/** A refused sender is cut off by then. */
const CLOSE_MS_MAX = 5_000
/** More of a body that is refused is not sent: an answer would be lost with the connection. */
const SENT_BYTES_MAX = 16 * 1024
/** Of a file that may be sent in parts. */
const PARTS_BYTES_MIN = 5 * 1024 * 1024

type Prepared = { presigned: Presigned; bytes: Buffer; complete: () => Promise<unknown> }
type Prepare = (platform: Platform, game_id: string) => Promise<Prepared>

const KINDS: Record<string, Prepare> = {
  async 'a file of a site'({ client }, game_id) {
    const bytes = Buffer.from('hello')
    const files = [{ path: 'a b/ü.html', content_length: bytes.length, content_type: 'text/html' }]
    const site = await client.call(createGameCdnSite, { params: { game_id }, body: { display_name: 'Site', files } })
    const params = { upload_id: site.upload_id }
    const complete = () => client.call(completeUpload, { params })
    return { presigned: site.presigned_requests[0]!, bytes, complete }
  },
  async 'the archive of a build'({ client }, game_id) {
    const bytes = await tarGz({ 'server.js': 'console.log(1)' })
    const build = await client.call(createGameBuild, { params: { game_id }, body: buildBody(bytes) })
    const complete = () => client.call(completeUpload, { params: { upload_id: build.upload_id } })
    return { presigned: build.image_presigned_request!, bytes, complete }
  },
  async 'a part of a build'({ client }, game_id) {
    const bytes = await tarGz({ 'data.bin': randomBytes(PARTS_BYTES_MIN).toString('latin1') })
    const body = { ...buildBody(bytes), multipart_upload: true }
    const build = await client.call(createGameBuild, { params: { game_id }, body })
    const complete = () => client.call(completeUpload, { params: { upload_id: build.upload_id } })
    return { presigned: build.image_presigned_requests![0]!, bytes, complete }
  },
  async 'a logo'({ client }, game_id) {
    const body = { path: 'logo.png', content_length: PNG.length, mime: 'image/png' }
    const prepared = await client.call(gameLogoUploadPrepare, { params: { game_id }, body })
    const params = { game_id, upload_id: prepared.upload_id }
    const complete = () => client.call(gameLogoUploadComplete, { params })
    return { presigned: prepared.presigned_request, bytes: PNG, complete }
  },
  async 'a banner'({ client }, game_id) {
    const body = { path: 'banner.png', content_length: PNG.length }
    const prepared = await client.call(gameBannerUploadPrepare, { params: { game_id }, body })
    const params = { game_id, upload_id: prepared.upload_id }
    const complete = () => client.call(gameBannerUploadComplete, { params })
    return { presigned: prepared.presigned_request, bytes: PNG, complete }
  },
}

type Put = { method: string; target: string; headers: Record<string, string>; bytes: Buffer }
/** What is sent instead of the good request, and how it is refused. */
type Change = { name: string; put: Put; code: ErrorCode[] }

function changesOf(good: Put, other: Put, admin: string): Change[] {
  const [path = '', query = ''] = good.target.split('?')
  const members = query.split('&')
  const at = (name: string, put: Partial<Put>, code?: ErrorCode[]): Change => {
    // Where the address is not checked the connection is not closed for it.
    const close: Record<string, string> = code === undefined ? {} : { connection: 'close' }
    const changed = { ...good, ...put, headers: { ...(put.headers ?? good.headers), ...close } }
    return { name, put: changed, code: code ?? ['UPLOAD_FORBIDDEN'] }
  }
  const to = (name: string, target: string, code?: ErrorCode[]): Change => at(name, { target }, code)
  const edit = (name: string, change: (value: string) => string): string =>
    `${path}?${members.map((member) => (member.startsWith(`${name}=`) ? `${name}=${change(member.slice(name.length + 1))}` : member)).join('&')}`
  const ELSEWHERE: ErrorCode[] = ['API_NOT_FOUND', 'API_BAD_REQUEST', 'UPLOAD_FORBIDDEN']
  const UNKNOWN: ErrorCode[] = ['API_NOT_FOUND', 'API_UNSUPPORTED_MEDIA_TYPE']
  const TWO_LENGTHS: ErrorCode[] = ['API_BAD_REQUEST', 'UPLOAD_FORBIDDEN']
  const headers = (more: Record<string, string | undefined>): Record<string, string> =>
    Object.fromEntries(Object.entries({ ...good.headers, ...more }).filter((entry) => entry[1] !== undefined)) as never
  const length = good.bytes.length
  const flip = (hex: string): string => (hex.startsWith('0') ? '1' : '0') + hex.slice(1)
  return [
    ...members.flatMap((member) => [
      to(`without ${member}`, `${path}?${members.filter((item) => item !== member).join('&')}`),
      to(`${member} twice`, `${good.target}&${member}`),
    ]),
    to('another signature', edit('signature', flip)),
    to(
      'no signature',
      edit('signature', () => ''),
    ),
    to(
      'a signature in upper case',
      edit('signature', (hex) => (/[a-f]/.test(hex) ? hex.toUpperCase() : flip(hex))),
    ),
    to(
      'the signature of another upload',
      edit('signature', () => other.target.split('signature=')[1]!),
    ),
    to('the object of another upload', `${other.target.split('?')[0]}?${query}`),
    to('an object that nobody prepared', `/objects/${'0'.repeat(32)}?${query}`),
    to(
      'a later end',
      edit('expires', (ms) => String(Number(ms) + 1)),
    ),
    to(
      'an end in the far future',
      edit('expires', () => '9007199254740991'),
    ),
    to(
      'another length in the address',
      edit('content_length', (bytes) => String(Number(bytes) + 1)),
    ),
    to('an offset', `${good.target}&byte_offset=${length}`),
    to('the members in another order', `${path}?${members.toReversed().join('&')}`),
    to('an escaped slash', good.target.replace('/objects/', '/objects%2F'), ELSEWHERE),
    to('two slashes', `/${good.target}`, ELSEWHERE),
    to('a detour', good.target.replace('/objects/', '/objects/../objects/'), ELSEWHERE),
    to('another spelling of a letter', good.target.replace('/objects/', '/%6fbjects/'), ELSEWHERE),
    at('the credential in a header', { target: path, headers: headers({ authorization: `Bearer ${query}` }) }),
    at('an administrator without an address', { target: path, headers: headers({ authorization: `Bearer ${admin}` }) }),
    at('a byte less', {
      bytes: good.bytes.subarray(1),
      headers: headers({ 'content-length': String(length - 1) }),
    }),
    at('a byte more', {
      bytes: Buffer.concat([good.bytes, Buffer.alloc(1)]),
      headers: headers({ 'content-length': String(length + 1) }),
    }),
    at('ten gigabytes more', { headers: headers({ 'content-length': String(length + 10 ** 10) }) }),
    at('a length beyond 64 bits', { headers: headers({ 'content-length': '18446744073709551621' }) }, TWO_LENGTHS),
    at('chunks', {
      headers: headers({ 'content-length': undefined, 'transfer-encoding': 'chunked' }),
      bytes: Buffer.concat([Buffer.from(`${length.toString(16)}\r\n`), good.bytes, Buffer.from('\r\n0\r\n\r\n')]),
    }),
    at('chunks and a length', { headers: headers({ 'transfer-encoding': 'chunked' }) }, TWO_LENGTHS),
    at('a question before the body', { target: edit('signature', flip), headers: headers({ expect: '100-continue' }) }),
    ...['POST', 'PATCH', 'DELETE', 'GET', 'HEAD'].map((method) => at(method, { method }, UNKNOWN)),
    at('a method in a header', { method: 'POST', headers: headers({ 'x-http-method-override': 'PUT' }) }, UNKNOWN),
  ]
}

test('an address of an upload is good for what was prepared, and for nothing else', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx } = platform
  const { game_id } = await newGame(platform)
  const { hostname, port } = new URL(platform.api_url)

  /** What comes back until the platform closes the connection. */
  async function exchange({ method, target, headers, bytes }: Put): Promise<string> {
    const socket = net.connect(Number(port), hostname)
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // It is cut while we still send: that is what is asked for.
    socket.on('error', () => undefined)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.setTimeout(CLOSE_MS_MAX, () => socket.destroy(new Error('nobody closed the connection')))
    const lines = Object.entries({ host: 'localhost', ...headers }).map((line) => line.join(': '))
    socket.write(`${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`)
    // The last byte never comes, so nobody can read on to a next request.
    socket.write(bytes.subarray(0, Math.min(bytes.length, SENT_BYTES_MAX) - 1))
    await closed
    return Buffer.concat(chunks).toString()
  }
  const putOf = ({ presigned, bytes }: Prepared): Put => {
    const { pathname, search } = new URL(apiAddress(platform, presigned))
    const type = new URLSearchParams(search).get('content_type')
    const headers = { 'content-length': String(bytes.length), ...(type === null ? {} : { 'content-type': type }) }
    return { method: 'PUT', target: `${pathname}${search}`, headers, bytes }
  }
  const stored = (): string[] => globSync('**/*', { cwd: join(platform.data_dir, 'objects') }).sort()

  for (const [kind, prepare] of Object.entries(KINDS)) {
    await t.test(kind, async () => {
      const [mine, other] = [await prepare(platform, game_id), await prepare(platform, game_id)]
      const [good, foreign] = [putOf(mine), putOf(other)]
      const before = stored()
      for (const { name, put, code } of changesOf(good, foreign, platform.token)) {
        const answer = await exchange(put)
        const [head = '', body = ''] = answer.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '').split('\r\n\r\n')
        assert.match(head, /^HTTP\/1\.1 4\d\d [\s\S]*\r\nconnection: close/i, `${name}: ${answer}`)
        if (put.method === 'HEAD') continue
        assert.ok(code.includes((JSON.parse(body) as { code: ErrorCode }).code), `${name}: ${answer}`)
      }
      assert.deepEqual(stored(), before)

      const { 'content-length': _, ...headers } = good.headers
      const address = apiAddress(platform, mine.presigned)
      const send = () => fetch(address, { method: 'PUT', body: new Uint8Array(mine.bytes), headers })
      assert.equal((await send()).status, 200)
      await mine.complete()
      // What is complete does not change any more, not even to itself.
      const late = await send()
      assert.equal(late.status, 409)
      assert.equal(((await late.json()) as { code: string }).code, 'UPLOAD_COMPLETE')

      const expire_ms = Number(new URL(other.presigned.url).searchParams.get('expires'))
      platform.advance(expire_ms - ctx.now() + 1)
      assert.match(await exchange(foreign), /^HTTP\/1\.1 403 [\s\S]*"UPLOAD_FORBIDDEN"/)
      await refused('UPLOAD_INCOMPLETE', other.complete())
    })
  }
})
