// The settings of this platform that decide which version configs are accepted.
import type { PlatformRules } from '@musterhost/contract/version-check'
import { hasHttps } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { FetchFailure, parseTarget } from '../../outbound/safe-fetch.ts'
import { webhookRules } from '../../outbound/webhook-rules.ts'

export function platformRules(config: Config): PlatformRules {
  return {
    mode: config.mode,
    regions: config.regions,
    host_ranges: config.host_port_ranges,
    registries: config.registries,
    is_swarm: config.driver === 'swarm',
    has_certificates: hasHttps(config),
    checkUrl: (url) => checkUrl(config, url),
  }
}

/** Resolves no name: the addresses of a name are checked at each call. */
function checkUrl(config: Config, url: string): { reason: string; message: string } | null {
  try {
    parseTarget(url, webhookRules(config))
    return null
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    const reason = error.reason === 'address_not_public' ? 'address_not_public' : 'invalid'
    return { reason, message: error.message }
  }
}
