import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CAPTCHA_TEST_SECRETS, type CaptchaConfig } from '../captcha-config.ts'
import { checkCaptcha } from './captcha-check.ts'

const RULES = { requests_before_reverify: 10, verification_ttl: 240_000 }
const check = (mode: 'development' | 'production', captcha: Partial<CaptchaConfig>) =>
  checkCaptcha(mode, { ...RULES, ...captcha }, ['captcha']).map(({ path, reason }) => `${path.join('.')} ${reason}`)

test('a captcha needs a provider and its secret', () => {
  assert.deepEqual(check('development', {}), ['captcha required'])
  assert.deepEqual(check('development', { turnstile: { site_key: 'a', secret_key: ' ' } }), [
    'captcha.turnstile.secret_key required',
  ])
  assert.deepEqual(check('production', { hcaptcha: { site_key: 'a', secret_key: 'b' } }), [])
})

test('a key is one word, as the provider shows it', () => {
  for (const key of ['a b', 'a\r\nb', ' a', 'a\n', '\u200ba']) {
    const captcha = { turnstile: { site_key: key, secret_key: key } }
    assert.deepEqual(check('development', captcha), [
      'captcha.turnstile.site_key invalid',
      'captcha.turnstile.secret_key invalid',
    ])
  }
})

test('published test secrets are refused in production, and in production only', () => {
  for (const secret_key of CAPTCHA_TEST_SECRETS) {
    for (const provider of ['hcaptcha', 'turnstile'] as const) {
      const captcha = { [provider]: { site_key: 'a', secret_key } }
      assert.deepEqual(check('production', captcha), [`captcha.${provider}.secret_key not_allowed`])
      assert.deepEqual(check('development', captcha), [])
    }
  }
})
