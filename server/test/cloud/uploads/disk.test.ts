import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { completeUpload, createGameCdnSite } from '@musterhost/contract'
import { startPlatform } from '../../support/platform.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'
import { arrives, newGame, putFile, refused } from '../steps.ts'

const DISK_BYTES = 16 * 1024 * 1024

test('a disk that is nearly full', async (t) => {
  const disk = await mountSmallDisk(t, DISK_BYTES)
  if (disk === null) return
  const platforms: { close: () => Promise<void> }[] = []
  t.after(async () => {
    for (const platform of platforms) await platform.close()
    await disk.unmount()
  })

  const start = async (disk_free_mb_min: number, env: Record<string, string> = {}) => {
    const platform = await startPlatform(t, {
      roles: 'api',
      data_dir: disk.folder,
      env: { MUSTER_UPLOAD_DISK_FREE_MB_MIN: String(disk_free_mb_min), ...env },
    })
    platforms.push(platform)
    return { platform, ...(await newGame(platform)) }
  }
  const siteOf = (content_length: number) => ({ display_name: 'S', files: [{ path: 'a', content_length }] })

  await t.test('takes no upload that would leave too little free, and takes it again when there is room', async () => {
    const { platform, game_id } = await start(8)
    const prepare = (content_length: number) =>
      platform.client.call(createGameCdnSite, { params: { game_id }, body: siteOf(content_length) })
    const error = await refused('API_NOT_AVAILABLE', prepare(10_000_000))
    assert.equal(error.status, 503)
    assert.deepEqual(error.metadata, { reason: 'disk_full' })
    assert.equal(error.retry_after_s, 60)

    const { upload_id, presigned_requests } = await prepare(1_000_000)
    await disk.leave(7_000_000)
    const response = await putFile(platform, presigned_requests[0]!, Buffer.alloc(1_000_000))
    assert.equal(response.status, 503)
    assert.equal(((await response.json()) as { code: string }).code, 'API_NOT_AVAILABLE')
    await disk.empty()
    await arrives(platform, presigned_requests[0]!, Buffer.alloc(1_000_000))
    await platform.client.call(completeUpload, { params: { upload_id } })
  })

  await t.test(
    'that fills up in the middle of a file keeps no part of that file, and takes it when there is room',
    async () => {
      const { platform, game_id } = await start(0)
      const bytes = Buffer.alloc(6_000_000, 'x')
      const body = siteOf(bytes.length)
      const { upload_id, presigned_requests } = await platform.client.call(createGameCdnSite, {
        params: { game_id },
        body,
      })
      // What is missing is taken by somebody else after the platform has looked: the check is asked to believe in it.
      const free = 4_000_000
      for (let round = 0; round < 5; round++) {
        await disk.leave(free + round * 300_000)
        const response = await putFile(platform, presigned_requests[0]!, bytes)
        assert.equal(response.status, 503)
        await disk.empty()
        const incoming = join(disk.folder, 'objects', 'incoming')
        const left = await Promise.all((await readdir(incoming)).map((name) => readdir(join(incoming, name))))
        assert.deepEqual(left.flat(), [])
      }
      const error = await refused('UPLOAD_INCOMPLETE', platform.client.call(completeUpload, { params: { upload_id } }))
      assert.equal(error.metadata.missing_count, 1)
      await arrives(platform, presigned_requests[0]!, bytes)
      await platform.client.call(completeUpload, { params: { upload_id } })
    },
  )
})
