// The Turnstile widget of the sign-in. Only a platform with a site key loads it, and only then the content security policy
// allows its host.
import { useEffect, useRef } from 'react'

type Api = {
  render: (element: HTMLElement, options: { sitekey: string; callback: (response: string) => void }) => string
  remove: (widget_id: string) => void
}

const SCRIPT = 'https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit'

function loadApi(): Promise<Api> {
  const there = (globalThis as { turnstile?: Api }).turnstile
  if (there !== undefined) return Promise.resolve(there)
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = SCRIPT
    script.onload = () => resolve((globalThis as unknown as { turnstile: Api }).turnstile)
    script.onerror = () => reject(new Error('The captcha could not be loaded.'))
    document.head.append(script)
  })
}

export function Turnstile({ site_key, onResponse }: { site_key: string; onResponse: (response: string) => void }) {
  const frame = useRef<HTMLDivElement>(null)
  const report = useRef(onResponse)
  report.current = onResponse
  useEffect(() => {
    let remove = (): void => undefined
    let is_gone = false
    loadApi().then(
      (api) => {
        if (is_gone || frame.current === null) return
        const id = api.render(frame.current, { sitekey: site_key, callback: (response) => report.current(response) })
        remove = () => api.remove(id)
      },
      () => undefined,
    )
    return () => {
      is_gone = true
      remove()
    }
  }, [site_key])
  return <div ref={frame} className="min-h-16" />
}
