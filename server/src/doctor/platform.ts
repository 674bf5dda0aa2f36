// The processes of the platform: the ports that a start would need, or the roles that run.
import type { Config } from '../config/config.ts'
import { readConfig } from '../config/read-config.ts'
import { ROLES } from '../config/roles.ts'
import { StartError } from '../config/start-error.ts'
import { chooseEdgePorts, requireFreePorts } from '../supervisor/ports.ts'
import { type Finding, failed, messageOf, ok, skipped, warning } from './finding.ts'

/** To ask a role whether it is ready. */
const READY_MS_MAX = 5_000
/** Bytes of such a response that are read. */
const READY_BYTES_MAX = 64 * 1024

export async function examinePorts(config: Config, env: NodeJS.ProcessEnv, is_running: boolean): Promise<Finding[]> {
  if (is_running) return [skipped('ports', 'the running platform has them')]
  const { settings, reasons } = await chooseEdgePorts(config, env)
  try {
    await requireFreePorts(readConfig({ ...env, ...settings }))
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return error.message.split('\n').map((sentence) => failed('ports', sentence, portRemedy(sentence)))
  }
  const ports = `HTTP ${settings.MUSTER_EDGE_HTTP_PORT}, HTTPS ${settings.MUSTER_EDGE_HTTPS_PORT}`
  return [ok('ports', reasons.length === 0 ? ports : `${ports} (${reasons.join(', ')})`)]
}

function portRemedy(sentence: string): string {
  const setting =
    /\bMUSTER_[A-Z_]+\b/.exec(sentence.slice(sentence.indexOf(';')))?.[0] ?? /\bMUSTER_[A-Z_]+\b/.exec(sentence)?.[0]
  const port = /\d+/.exec(sentence)?.[0]
  if (setting === 'MUSTER_INTERNAL_HOST') return 'unset MUSTER_INTERNAL_HOST'
  return `ss -ltnp 'sport = :${port}'; export ${setting ?? 'MUSTER_EDGE_HTTP_PORT'}=PORT`
}

/** Asks each role at its operator's port. Its warnings are those that the role logs. */
export async function examinePlatform(config: Config, is_running: boolean): Promise<Finding[]> {
  if (!is_running) return [skipped('platform', `none runs on ${config.data_dir}`)]
  const { metrics, roles } = config
  if (metrics === null) return [skipped('platform', 'it runs; without MUSTER_METRICS_PORT its roles cannot be asked')]
  // The supervisor gives each role the port of its place in the list.
  const first_port = metrics.port - ROLES.findIndex((role) => roles.includes(role))
  const remedy = `tail -n 50 ${config.data_dir}/logs/`
  const findings = roles.map(async (role): Promise<Finding[]> => {
    const url = `http://${metrics.host}:${first_port + ROLES.indexOf(role)}/health/ready`
    try {
      const { is_ready, checks, warnings } = await readReadiness(url)
      const missing = Object.keys(checks).filter((name) => !checks[name])
      const found = warnings.map((text) => warning('platform', `${role}: ${text}`, `${remedy}${role}.log`))
      if (is_ready) return found
      return [failed('platform', `${role} is not ready: ${missing.join(', ')}.`, `${remedy}${role}.log`), ...found]
    } catch (error) {
      return [failed('platform', `${role} does not respond at ${url}: ${messageOf(error)}.`, `${remedy}${role}.log`)]
    }
  })
  const found = (await Promise.all(findings)).flat()
  return found.length > 0 ? found : [ok('platform', `it runs, and ${roles.join(', ')} are ready`)]
}

type Readiness = { is_ready: boolean; checks: Record<string, boolean>; warnings: string[] }

async function readReadiness(url: string): Promise<Readiness> {
  const response = await fetch(url, { signal: AbortSignal.timeout(READY_MS_MAX) })
  const text = await response.text()
  if (text.length > READY_BYTES_MAX) throw new Error('its response is too long')
  return JSON.parse(text) as Readiness
}
