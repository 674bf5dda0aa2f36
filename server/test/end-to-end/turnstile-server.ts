// Turnstile without the internet: the two addresses of the provider that a game on the platform depends on. `api.js` is
// the widget, with the functions of the real one; `siteverify` is what the platform asks, and knows the test keys that
// Cloudflare publishes. The widget's two buttons are a player's two ways: to solve it, and to make something up.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** They always pass: https://developers.cloudflare.com/turnstile/troubleshooting/testing/ */
export const TEST_SITE_KEY = '1x00000000000000000000AA'
export const TEST_SECRET_KEY = '1x0000000000000000000000000000000AA'
const TEST_RESPONSE = 'XXXX.DUMMY.TOKEN.XXXX'

const WIDGET = `
const widgets = new Map()
window.turnstile = {
  render(container, { sitekey, theme, callback, 'error-callback': failed }) {
    const id = 'widget-' + widgets.size
    const box = document.createElement('div')
    box.style = 'display:flex; align-items:center; gap:12px; box-sizing:border-box; width:300px; height:65px; padding:0 14px;' +
      'font:14px sans-serif; color:#f4f4f4; background:#232323; border:1px solid #797979'
    const button = (text, style, response) => {
      const made = document.createElement('button')
      made.type = 'button'
      made.textContent = text
      made.style = 'all:unset; cursor:pointer; ' + style
      made.onclick = () => callback(response)
      box.append(made)
    }
    if (sitekey !== '${TEST_SITE_KEY}' || theme !== 'dark') return failed('110100')
    button('☐  Verify you are human', 'flex:1; font-size:14px', '${TEST_RESPONSE}')
    button('guess', 'font-size:11px; color:#bbb', 'made up')
    container.append(box)
    widgets.set(id, box)
    return id
  },
  remove(id) {
    widgets.get(id).remove()
  },
}
window[new URL(document.currentScript.src).searchParams.get('onload')]()
`

export type TurnstileServer = {
  script_url: string
  verify_url: string
  /** How often a page has loaded the widget. */
  loads: () => number
  /** What the platform asked, in order. */
  asked: Record<string, string>[]
}

export async function startTurnstileServer(t: TestContext): Promise<TurnstileServer> {
  let loads = 0
  const asked: TurnstileServer['asked'] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { pathname } = new URL(request.url ?? '/', 'http://provider')
    if (request.method === 'GET' && pathname === '/turnstile/v0/api.js') {
      loads++
      response.writeHead(200, { 'content-type': 'text/javascript' }).end(WIDGET)
    } else if (request.method === 'POST' && pathname === '/turnstile/v0/siteverify') {
      const form = Object.fromEntries(new URLSearchParams(body))
      asked.push(form)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(verdict(form)))
    } else response.writeHead(404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/turnstile/v0`
  return { script_url: `${url}/api.js`, verify_url: `${url}/siteverify`, loads: () => loads, asked }
}

function verdict({ secret, response }: Record<string, string>): object {
  if (secret !== TEST_SECRET_KEY) return { success: false, 'error-codes': ['invalid-input-secret'] }
  const success = response === TEST_RESPONSE
  return success
    ? { success, 'error-codes': [], hostname: 'example.com', action: 'test' }
    : { success, 'error-codes': ['invalid-input-response'] }
}
