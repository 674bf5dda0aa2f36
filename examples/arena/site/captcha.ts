// The captcha before a game. The script of the provider is loaded only when the platform requires a captcha: otherwise no third
// party learns who plays. Both providers have the same functions.
import { type CaptchaRequired, MusterError } from 'musterhost-sdk/browser'

type Widget = {
  sitekey: string
  action?: string
  theme: 'dark'
  callback(response: string): void
  'error-callback'(): void
}
type Provider = { render(container: HTMLElement, widget: Widget): string; remove(id: string): void }

/** What the providers' scripts put into the page, and what they call when they are there. */
type CaptchaWindow = Partial<Record<CaptchaRequired['provider'], Provider>> & { captchaLoaded?: () => void }

const SCRIPT_MS_MAX = 15_000

const page: CaptchaWindow = window as CaptchaWindow

/** Shows it in the element and resolves with the player's response. Throws a MusterError when it cannot be shown. */
export async function solveCaptcha(
  { provider, site_key, action }: CaptchaRequired,
  place: HTMLElement,
): Promise<string> {
  const api = page[provider] ?? (await loadScript(provider))
  // What was removed leaves traces of its own; a new element has none.
  const container = document.createElement('div')
  place.replaceChildren(container)
  let id: string | undefined
  try {
    return await new Promise<string>((resolve, reject) => {
      id = api.render(container, {
        sitekey: site_key,
        ...(action !== undefined && { action }),
        theme: 'dark',
        callback: resolve,
        'error-callback': () => reject(new MusterError('CAPTCHA_NOT_SHOWN', 'The captcha does not work here.')),
      })
    })
  } finally {
    if (id !== undefined) api.remove(id)
    place.replaceChildren()
  }
}

async function loadScript(provider: CaptchaRequired['provider']): Promise<Provider> {
  const script = document.createElement('script')
  const url = new URL(scriptAddress(provider))
  url.searchParams.set('render', 'explicit')
  url.searchParams.set('onload', 'captchaLoaded')
  script.src = url.href
  await new Promise<void>((resolve) => {
    page.captchaLoaded = resolve
    script.onerror = () => resolve()
    setTimeout(resolve, SCRIPT_MS_MAX)
    document.head.append(script)
  })
  // Whatever ended the wait: it is there or it is not.
  const api = page[provider]
  if (api !== undefined) return api
  script.remove()
  throw new MusterError('CAPTCHA_NOT_SHOWN', 'The captcha could not be loaded. Does something in your browser stop it?')
}

/** Read from the head of the page, so that a deployment can name another address. */
function scriptAddress(provider: CaptchaRequired['provider']): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${provider}"]`)?.content ?? ''
}
