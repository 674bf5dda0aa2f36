import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import test from 'node:test'
import { completeUpload, createGameCdnSite } from '@musterhost/contract'
import { startPlatform } from '../../support/platform.ts'
import { apiAddress, arrives, newGame, type Presigned, putFile, refused } from '../steps.ts'

/** A closed connection is waited for so long. */
const CLOSE_MS_MAX = 5_000

test('the PUT of a presigned file', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { client, ctx } = platform
  const { game_id, cloud_token } = await newGame(platform)
  const port = Number(new URL(platform.api_url).port)

  async function prepare(file: { content_length: number; content_type?: string }) {
    const body = { display_name: 'Site', files: [{ path: 'a.txt', ...file }] }
    const site = await client.call(createGameCdnSite, { params: { game_id }, body })
    return { upload_id: site.upload_id, presigned: site.presigned_requests[0]! }
  }

  async function isThere({ url }: Presigned): Promise<boolean> {
    return (await ctx.objects.stat(new URL(url).pathname.split('/').at(-1)!)) !== null
  }

  /** What comes back until the platform closes the connection; with `half`, until an answer is there. */
  async function exchange(head: string[], body: Buffer | string = ''): Promise<{ text: string; is_closed: boolean }> {
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // A connection that is cut while we still write is what is to be shown.
    socket.on('error', () => undefined)
    const closed = once(socket, 'close', { signal: AbortSignal.timeout(CLOSE_MS_MAX) }).then(
      () => true,
      () => false,
    )
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.write(body)
    const is_closed = await closed
    socket.destroy()
    return { text: Buffer.concat(chunks).toString(), is_closed }
  }

  const headOf = (presigned: Presigned, ...headers: string[]) => {
    const { pathname, search } = new URL(presigned.url)
    return [`PUT ${pathname}${search} HTTP/1.1`, 'Host: localhost', ...headers]
  }

  await t.test('stores the bytes, empty ones too, and may be repeated until the upload is complete', async () => {
    const { upload_id, presigned } = await prepare({ content_length: 5 })
    const response = await putFile(platform, presigned, 'hello')
    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), {})
    await arrives(platform, presigned, 'again')
    const empty = await prepare({ content_length: 0 })
    await arrives(platform, empty.presigned, '')
    for (const id of [upload_id, empty.upload_id]) await client.call(completeUpload, { params: { upload_id: id } })
  })

  await t.test('is refused when anything of the address was changed', async () => {
    const { presigned } = await prepare({ content_length: 5 })
    const other = await prepare({ content_length: 5 })
    const good = new URL(apiAddress(platform, presigned))
    const change = (edit: (url: URL) => void): string => {
      const url = new URL(good)
      edit(url)
      return url.href
    }
    const at = (path: string, query = good.search): string => `${good.origin}${path}${query}`
    const signature = good.searchParams.get('signature')!
    const flipped = (signature.startsWith('0') ? '1' : '0') + signature.slice(1)
    const addresses = [
      change((url) => url.searchParams.set('signature', flipped)),
      change((url) => url.searchParams.set('signature', signature.toUpperCase())),
      change((url) => url.searchParams.set('signature', '')),
      change((url) => url.searchParams.delete('signature')),
      change((url) => url.searchParams.append('signature', signature)),
      change((url) => url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1))),
      change((url) => url.searchParams.set('content_length', '6')),
      change((url) => url.searchParams.append('extra', '1')),
      at(new URL(other.presigned.url).pathname),
      at(`/objects/${'0'.repeat(32)}`),
      at('/objects/x'),
      at(good.pathname, ''),
    ]
    for (const address of addresses) {
      const response = await fetch(address, { method: 'PUT', body: 'hello' })
      assert.equal(response.status, 403, address)
      const body = (await response.json()) as { code: string }
      assert.deepEqual(Object.keys(body).sort(), ['code', 'documentation', 'message', 'metadata', 'ray_id'])
      assert.equal(body.code, 'UPLOAD_FORBIDDEN')
    }
    const withToken = { method: 'PUT', body: 'hello', headers: { authorization: `Bearer ${cloud_token}` } }
    assert.equal((await fetch(at(good.pathname, ''), withToken)).status, 403)
    for (const method of ['POST', 'GET', 'DELETE', 'PATCH']) {
      const response = await fetch(good.href, { method, body: method === 'GET' ? null : 'hello' })
      assert.ok([400, 404].includes(response.status), `${method} ${response.status}`)
    }
    assert.equal(await isThere(presigned), false)
    assert.equal(await isThere(other.presigned), false)
    await arrives(platform, presigned, 'hello')
  })

  await t.test('is refused with another length than the signed one, whatever the header says', async () => {
    const { presigned } = await prepare({ content_length: 5 })
    for (const body of ['', 'hell', 'hello!', 'x'.repeat(100_000)]) {
      assert.equal((await putFile(platform, presigned, body)).status, 403, body.slice(0, 10))
    }
    const chunked = await exchange(
      headOf(presigned, 'Transfer-Encoding: chunked', 'Connection: close'),
      '5\r\nhello\r\n0\r\n\r\n',
    )
    assert.match(chunked.text, /^HTTP\/1\.1 403 /)
    assert.equal(await isThere(presigned), false)
  })

  await t.test('a body that breaks off leaves nothing', async () => {
    const { upload_id, presigned } = await prepare({ content_length: 5 })
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write(`${headOf(presigned, 'Content-Length: 5').join('\r\n')}\r\n\r\nhel`)
    socket.end()
    await once(socket.resume(), 'close')
    assert.equal(await isThere(presigned), false)
    await refused('UPLOAD_INCOMPLETE', client.call(completeUpload, { params: { upload_id } }))
    await arrives(platform, presigned, 'hello')
  })

  await t.test('bytes after the end of the body are no part of it', async () => {
    const { presigned } = await prepare({ content_length: 5 })
    const { text } = await exchange(headOf(presigned, 'Content-Length: 5'), 'hello!extra\r\n\r\n')
    assert.match(text, /^HTTP\/1\.1 (200|400) /)
    const object = await ctx.objects.stat(new URL(presigned.url).pathname.split('/').at(-1)!)
    assert.ok(object === null || object.content_length === 5)
  })

  await t.test('the connection is closed when a refused request still has its body to send', async () => {
    const { presigned } = await prepare({ content_length: 50_000_000 })
    const bad = { ...presigned, url: presigned.url.replace(/signature=.*/, `signature=${'0'.repeat(64)}`) }
    const { text, is_closed } = await exchange(headOf(bad, 'Content-Length: 50000000'), 'x'.repeat(1000))
    assert.equal(is_closed, true)
    assert.match(text, /^HTTP\/1\.1 403 /)
    assert.match(text, /connection: close/i)
  })

  await t.test('a signed content type is required, any other time it is free', async () => {
    const { presigned } = await prepare({ content_length: 2, content_type: 'text/html; charset=utf-8' })
    const put = (content_type: string | null) =>
      fetch(apiAddress(platform, presigned), {
        method: 'PUT',
        body: Buffer.from('hi'),
        headers: content_type === null ? {} : { 'content-type': content_type },
      })
    for (const type of [null, 'text/html', 'application/javascript'])
      assert.equal((await put(type)).status, 403, String(type))
    assert.equal((await put('text/html; charset=utf-8')).status, 200)
    const free = await prepare({ content_length: 2 })
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      const response = await fetch(apiAddress(platform, free.presigned), {
        method: 'PUT',
        body: '{}',
        headers: { 'content-type': type },
      })
      assert.equal(response.status, 200, type)
    }
  })

  await t.test('two at once leave the bytes of one of them, whole', async () => {
    const content_length = 300_000
    const { presigned } = await prepare({ content_length })
    const bodies = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(content_length))
    await Promise.all(bodies.map((body) => arrives(platform, presigned, body)))
    const chunks: Buffer[] = []
    for await (const chunk of await ctx.objects.read(new URL(presigned.url).pathname.split('/').at(-1)!))
      chunks.push(chunk)
    assert.ok(bodies.includes(Buffer.concat(chunks).toString()))
  })

  await t.test('a body much larger than the limit of other requests is streamed', async () => {
    const content_length = 20_000_000
    const { upload_id, presigned } = await prepare({ content_length })
    await arrives(platform, presigned, Buffer.alloc(content_length, 'x'))
    await client.call(completeUpload, { params: { upload_id } })
  })

  await t.test('an address ends after an hour', async () => {
    const { presigned } = await prepare({ content_length: 5 })
    const expire_ms = Number(new URL(presigned.url).searchParams.get('expires'))
    assert.ok(Math.abs(expire_ms - ctx.now() - 60 * 60_000) < 60_000)
    platform.advance(expire_ms - ctx.now() + 1)
    const response = await putFile(platform, presigned, 'hello')
    assert.equal(response.status, 403)
    assert.equal(((await response.json()) as { metadata: { reason: string } }).metadata.reason, 'expired')
  })
})
