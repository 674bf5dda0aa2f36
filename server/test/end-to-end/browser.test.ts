// The browser of the tests, beside tests that change the addresses of the machine.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { inOwnNetwork, ip } from '../support/own-network.ts'
import { until } from '../support/until.ts'
import { openBrowser } from './browser.ts'

/** Chromium opens no more connections to a server. Further requests wait for one. */
const CONNECTIONS_MAX = 6
/** More requests than that: some of them wait while the addresses change. */
const REQUESTS = 12
const CHANGES = 20

inOwnNetwork(import.meta.filename, () => {
  test('requests that wait for a connection go on while the machine gets and loses addresses', async (t) => {
    const browser = await openBrowser(t)
    if (browser === null) return
    const held: ServerResponse[] = []
    const server = createServer(({ url }, response) => {
      if (url === '/held') held.push(response)
      else response.setHeader('content-type', 'text/html').end('<!doctype html><title>Page</title>')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    const asked = page.evaluate(async (count) => {
      const requests = Array.from({ length: count }, () => fetch('/held', { cache: 'no-store' }))
      const outcomes = await Promise.allSettled(requests)
      return outcomes.map(({ status }) => status)
    }, REQUESTS)
    await until('the page has all its connections', () => held.length === CONNECTIONS_MAX)
    for (let change = 0; change < CHANGES; change++) {
      ip('addr add 198.51.100.7/24 dev out')
      ip('addr del 198.51.100.7/24 dev out')
    }
    const answering = setInterval(() => {
      for (const response of held.splice(0)) response.end('done')
    })
    t.after(() => clearInterval(answering))
    assert.deepEqual(await asked, Array(REQUESTS).fill('fulfilled'))
  })
}, ['chromium'])
