// Settings of a platform under test, whose clients are all on this machine. Where a test plays a trusted proxy,
// MUSTER_TRUSTED_PROXIES has loopback addresses, which a real platform refuses (addresses/client-ip.test.ts).
import type { Config } from '../../src/config/config.ts'
import { readConfig } from '../../src/config/read-config.ts'

export function readTestConfig({ MUSTER_TRUSTED_PROXIES = '', ...env }: Record<string, string>): Config {
  const trusted_proxies = MUSTER_TRUSTED_PROXIES.split(',').map((item) => item.trim())
  return { ...readConfig(env), trusted_proxies: trusted_proxies.filter((item) => item !== '') }
}
