// The captcha of a version: when find, join and create ask for one, and who says whether it was solved.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

const secret = (length_max: number) =>
  Type.String({
    maxLength: length_max,
    writeOnly: true,
    description: 'Answers have an empty text in its place; a config that is created must say it.',
  })

export const CaptchaConfig = object(
  {
    requests_before_reverify: Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Requests that a client may make after a captcha, before it is asked for the next one.',
    }),
    verification_ttl: Type.Integer({
      minimum: 0,
      maximum: 12 * 3_600_000,
      description: 'Milliseconds after a captcha from which the client is asked for the next one.',
    }),
    hcaptcha: Type.Optional(
      object(
        { site_key: Type.String({ minLength: 1, maxLength: 36 }), secret_key: secret(42) },
        'Wins over turnstile.',
      ),
    ),
    turnstile: Type.Optional(
      object({
        site_key: Type.String({ minLength: 1, maxLength: 30 }),
        secret_key: secret(40),
        action: Type.Optional(
          Type.String({
            pattern: '^[A-Za-z0-9_-]{1,32}$',
            description:
              'The action that the page gives to the widget. A response that was solved for another action is refused.',
          }),
        ),
      }),
    ),
  },
  'A client of a namespace is its IPv4 address or IPv6 /64. Its first request needs a captcha in any case. A captcha counts only when it was solved on a host of the namespace: the host of its site, an active custom domain, or a host that a development token names.',
)
export type CaptchaConfig = Static<typeof CaptchaConfig>

/** Turnstile gives no longer ones. */
const CAPTCHA_RESPONSE_LENGTH_MAX = 2048
export const CaptchaResponse = object({
  client_response: Type.String({
    minLength: 1,
    maxLength: CAPTCHA_RESPONSE_LENGTH_MAX,
    description: 'What the widget handed to the page.',
  }),
})

export const CAPTCHA_PROVIDERS = ['hcaptcha', 'turnstile'] as const
export type CaptchaProvider = (typeof CAPTCHA_PROVIDERS)[number]

/** Published by the providers for tests: they pass, or fail, everybody. */
export const CAPTCHA_TEST_SECRETS: ReadonlySet<string> = new Set([
  '0x0000000000000000000000000000000000000000',
  '1x0000000000000000000000000000000AA',
  '2x0000000000000000000000000000000AA',
  '3x0000000000000000000000000000000AA',
])
