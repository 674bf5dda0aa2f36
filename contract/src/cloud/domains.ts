// Custom domains: a namespace's site under a name that its developer owns. A claim becomes active when a DNS record of the
// domain has the claim's own random value.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object } from '../records.ts'

const DOMAIN_LENGTH_MAX = 255

const namespace = { game_id: Id, namespace_id: Id }
const domain = Type.String({
  minLength: 1,
  maxLength: DOMAIN_LENGTH_MAX,
  description: 'A domain name without protocol; international names in either spelling.',
})
/** As the namespace tells it: lower case, ASCII (xn--). */
const canonical = Type.String({
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$',
  maxLength: DOMAIN_LENGTH_MAX,
  description: 'The domain as the namespace tells it.',
})
const defaults = { service: 'api', role: 'developer', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const addNamespaceDomain = operation({
  ...defaults,
  id: 'games.namespaces.addNamespaceDomain',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/domains',
  summary:
    'Claims a domain for the site of the namespace. The namespace lists the DNS records that prove the claim (`verification_records`); the site is served once one of them is found.',
  params: object(namespace),
  body: object({ domain }),
  response: Empty,
  errors: [
    'GAME_NOT_FOUND',
    'NAMESPACE_NOT_FOUND',
    'CDN_INVALID_DOMAIN',
    'CDN_TOO_MANY_DOMAINS',
    'CLOUD_HOSTNAME_TAKEN',
    'QUOTA_REACHED',
  ],
})

export const removeNamespaceDomain = operation({
  ...defaults,
  id: 'games.namespaces.removeNamespaceDomain',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/domains/{domain}',
  summary:
    'Gives up a domain of the namespace, verified or not. A verified domain then stays reserved for the group: for 30 days (a setting) no other group can have it.',
  params: object({ ...namespace, domain: canonical }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'CDN_DOMAIN_NOT_FOUND'],
})
