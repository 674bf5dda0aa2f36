// What a program must know before it can talk to this platform.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { object } from '../records.ts'

export const Bootstrap = object({
  cluster: Type.Enum(['enterprise', 'oss'], { description: 'Type of cluster the backend runs as.' }),
  access: Type.Enum(['public', 'private'], { description: 'Whether strangers may make groups.' }),
  domains: Type.Optional(
    object(
      {
        main: Type.String({ description: 'Hub, API and matchmaker.' }),
        cdn: Type.String({ description: "Games' sites are below it." }),
        job: Type.String({ description: 'Lobbies are below it.' }),
      },
      'Domains hosting parts of the platform.',
    ),
  ),
  origins: object(
    { hub: Type.Optional(Type.String({ description: 'Origin of the hub; absent when this platform serves none.' })) },
    'Origins used to build addresses.',
  ),
  captcha: object(
    { turnstile: Type.Optional(object({ site_key: Type.String() })) },
    'The captcha that a login by e-mail requires. Empty: none.',
  ),
  login_methods: object(
    {
      access_token: Type.Boolean(),
      email: Type.Boolean({ description: 'Whether the platform can send login codes.' }),
    },
    'Ways to log in.',
  ),
})

export const getBootstrap = operation({
  id: 'bootstrap',
  service: 'api',
  method: 'GET',
  path: '/cloud/bootstrap',
  summary: 'Basic information needed to use the cloud operations.',
  auth: ['anyone'],
  rate_limit: 'cloud',
  response: Bootstrap,
})
