// What makes the captcha of a version acceptable beyond its shape: it has a provider, its secrets are there, and they
// are not those that let everybody pass.
import { CAPTCHA_PROVIDERS, CAPTCHA_TEST_SECRETS, type CaptchaConfig } from '../captcha-config.ts'
import type { ErrorDetail } from '../errors.ts'
import type { PlatformRules } from './platform-rules.ts'

/** Visible ASCII: a blank or a line end of a copied key would be sent with it. */
const KEY = /^[\x21-\x7e]+$/

/** `mode`: null when the platform is unknown. `path` is where the captcha stands in the config. */
export function checkCaptcha(
  mode: PlatformRules['mode'] | null,
  captcha: CaptchaConfig,
  path: readonly string[],
): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (CAPTCHA_PROVIDERS.every((provider) => captcha[provider] === undefined)) {
    const message = `The captcha needs a provider: ${CAPTCHA_PROVIDERS.join(' or ')}.`
    errors.push({ path: [...path], reason: 'required', message })
  }
  for (const provider of CAPTCHA_PROVIDERS) {
    const keys = captcha[provider]
    if (keys === undefined) continue
    const at = [...path, provider, 'secret_key']
    if (!KEY.test(keys.site_key)) errors.push(notOneWord([...path, provider, 'site_key'], 'site', provider))
    if (keys.secret_key.trim() === '') {
      const message = `The secret key of ${provider} is missing. It is never answered: a config that was read has none.`
      errors.push({ path: at, reason: 'required', message })
    } else if (!KEY.test(keys.secret_key)) errors.push(notOneWord(at, 'secret', provider))
    if (mode === 'production' && CAPTCHA_TEST_SECRETS.has(keys.secret_key)) {
      const message = `The secret key is one that ${provider} publishes for tests: it lets every robot in.`
      errors.push({ path: at, reason: 'not_allowed', message })
    }
  }
  return errors
}

function notOneWord(path: string[], kind: 'site' | 'secret', provider: string): ErrorDetail {
  const message = `The ${kind} key of ${provider} contains a blank or another character that no key has. Copy it again, without blanks around it.`
  return { path, reason: 'invalid', message }
}
