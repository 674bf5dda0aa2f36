// The captcha of a version: when find, join and create require one, and which provider checks it.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

const secret = (length_max: number) =>
  Type.String({
    maxLength: length_max,
    writeOnly: true,
    description: 'Secret key of the provider. Required to create a version; an empty string when a version is read.',
  })

export const CaptchaConfig = object(
  {
    requests_before_reverify: Type.Integer({
      minimum: 0,
      maximum: 600,
      description: 'Number of requests after which a client needs a new captcha. Example: 10.',
    }),
    verification_ttl: Type.Integer({
      minimum: 0,
      maximum: 12 * 3_600_000,
      description: 'Time in milliseconds after which a client needs a new captcha. Example: 240000.',
    }),
    hcaptcha: Type.Optional(
      object(
        {
          site_key: Type.String({ minLength: 1, maxLength: 36, description: 'Public site key of hCaptcha.' }),
          secret_key: secret(42),
        },
        'Use hCaptcha. It takes precedence over `turnstile`.',
      ),
    ),
    turnstile: Type.Optional(
      object(
        {
          site_key: Type.String({ minLength: 1, maxLength: 30, description: 'Public site key of Turnstile.' }),
          secret_key: secret(40),
          action: Type.Optional(
            Type.String({
              pattern: '^[A-Za-z0-9_-]{1,32}$',
              description:
                'Action that the page passes to the widget. A response for another action is refused. Default: every action is accepted.',
            }),
          ),
        },
        'Use Turnstile.',
      ),
    ),
  },
  'Captcha for find, join and create. A client is an IPv4 address or an IPv6 /64 network; its first request always needs a captcha. A captcha is valid only when it was solved on a host of the namespace: its site, an active custom domain, or the `hostname` of a development token.',
)
export type CaptchaConfig = Static<typeof CaptchaConfig>

/** The maximum of Turnstile. */
const CAPTCHA_RESPONSE_LENGTH_MAX = 2048
export const CaptchaResponse = object({
  client_response: Type.String({
    minLength: 1,
    maxLength: CAPTCHA_RESPONSE_LENGTH_MAX,
    description: 'Response that the widget gave to the page.',
  }),
})

export const CAPTCHA_PROVIDERS = ['hcaptcha', 'turnstile'] as const
export type CaptchaProvider = (typeof CAPTCHA_PROVIDERS)[number]

/** Published by the providers for tests: they accept, or refuse, every response. */
export const CAPTCHA_TEST_SECRETS: ReadonlySet<string> = new Set([
  '0x0000000000000000000000000000000000000000',
  '1x0000000000000000000000000000000AA',
  '2x0000000000000000000000000000000AA',
  '3x0000000000000000000000000000000AA',
])
