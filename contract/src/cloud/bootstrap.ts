// Bootstrap: facts about the platform that a client reads before it has a credential.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const Bootstrap = object(
  {
    cluster: Type.Enum(['enterprise', 'oss'], {
      description: 'Kind of installation. This platform always returns `oss`.',
    }),
    access: Type.Enum(['public', 'private'], {
      description: '`public`: every user may create groups. `private`: only administrators may.',
    }),
    domains: Type.Optional(
      object(
        {
          main: Type.String({
            description: 'Host of the API, the matchmaker and the reference. Example: `muster.example.com`.',
          }),
          cdn: Type.String({ description: 'Parent domain of the sites of games.' }),
          job: Type.String({ description: 'Parent domain of lobby hosts.' }),
        },
        'Domains of the platform, without protocol.',
      ),
    ),
    origins: object(
      {
        hub: Type.String({ description: 'Origin of the hub. Example: `https://muster.example.com`.' }),
      },
      'Origins from which clients build URLs.',
    ),
    captcha: object(
      {
        turnstile: Type.Optional(
          object(
            { site_key: Type.String({ description: 'Public site key for the Turnstile widget.' }) },
            'The login requires a Turnstile captcha.',
          ),
        ),
      },
      'Captcha that a login by e-mail requires. Empty when it requires none.',
    ),
    login_methods: object(
      {
        access_token: Type.Boolean({ description: 'Whether administrators can log in by access token. Always true.' }),
        email: Type.Boolean({ description: 'Whether people can log in with a code sent by e-mail.' }),
      },
      'Ways to log in.',
    ),
  },
  'Facts about the platform.',
)

export const getBootstrap = operation({
  id: 'bootstrap',
  service: 'api',
  method: 'GET',
  path: '/cloud/bootstrap',
  summary: 'Gets basic information about the platform. It needs no credential.',
  auth: ['anyone'],
  rate_limit: 'cloud',
  response: Bootstrap,
})
