// Custom domains: the site of a namespace under a domain that its developer owns. A claim becomes active when a DNS record of
// the domain contains the random value of the claim.
import Type from 'typebox'
import { GameId, NamespaceId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'

/** Characters of a custom domain. */
const DOMAIN_LENGTH_MAX = 255

const namespace = { game_id: GameId, namespace_id: NamespaceId }
const domain = Type.String({
  minLength: 1,
  maxLength: DOMAIN_LENGTH_MAX,
  description:
    'Domain name without protocol. International names may be Unicode or ASCII (`xn--`). Example: `play.example.com`.',
})
/** As the namespace lists it: lower case, ASCII (xn--). */
const canonical = Type.String({
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$',
  maxLength: DOMAIN_LENGTH_MAX,
  description: 'Domain as the namespace lists it: lower case, ASCII. Example: `play.example.com`.',
})
const defaults = { service: 'api', role: 'developer', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const addNamespaceDomain = operation({
  ...defaults,
  id: 'games.namespaces.addNamespaceDomain',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/domains',
  summary:
    'Claims a domain for the site of the namespace. Set one of the DNS records in `verification_records` of the namespace; then the site is served there.',
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
    'Removes a domain from the namespace. A verified domain stays reserved for the group for 30 days (a setting): no other group can claim it.',
  params: object({ ...namespace, domain: canonical }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'CDN_DOMAIN_NOT_FOUND'],
})
