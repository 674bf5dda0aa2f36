// The wall clock, compared with other machines: the database, the ACME authority and the captcha provider, as far as the
// settings name them. Tokens and certificates are refused where the clock is wrong.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Config } from '../config/config.ts'
import { connect } from '../database/connect.ts'
import { holderOf } from '../supervisor/lock.ts'
import { askOperatorsServer } from './ask.ts'
import { type Finding, failed, ok, skipped, warning } from './finding.ts'

/** Includes the time of a request, and that the Date of HTTP has whole seconds. */
const SKEW_MS_MAX = 30_000
/** To ask the system's service. */
const PROGRAM_MS_MAX = 5_000
const REMEDY = 'sudo timedatectl set-ntp true'

/** Another machine's clock, when it can be read. */
type Reading = { source: string; skew_ms: number }

export async function examineClock(config: Config, now_ms: number): Promise<Finding[]> {
  const started = performance.now()
  /** This machine's wall clock, by the monotonic clock. */
  const now = (): number => now_ms + performance.now() - started
  const holder = holderOf(config.data_dir)
  if (holder !== null && Date.parse(holder.start_ts) - now() > SKEW_MS_MAX) {
    const message = `The platform was last started at ${holder.start_ts}, which this machine's clock has not reached.`
    return [failed('clock', message, REMEDY)]
  }
  const urls = [
    ...(config.acme === null ? [] : [config.acme.directory_url]),
    ...(config.login_turnstile === null ? [] : [config.captcha_urls.turnstile]),
  ]
  const readings = await Promise.all([
    ...(config.database_url === null ? [] : [readDatabase(config.database_url, now)]),
    ...urls.map((url) => readServer(config, url, now)),
  ])
  const known = readings.filter((reading) => reading !== null)
  if (known.length === 0) return [await askSystem()]
  return known.map(({ source, skew_ms }) => {
    const seconds = Math.round(Math.abs(skew_ms) / 1000)
    if (Math.abs(skew_ms) <= SKEW_MS_MAX) return ok('clock', `agrees with ${source}`)
    const side = skew_ms > 0 ? 'ahead of' : 'behind'
    return failed('clock', `This machine's clock is ${seconds} s ${side} that of ${source}.`, REMEDY)
  })
}

/** Null: the check of the database reports why. */
async function readDatabase(url: string, now: () => number): Promise<Reading | null> {
  const database = connect({ url, application_name: 'muster doctor', connections_max: 1 })
  try {
    const { rows } = await database.pool.query<{ ms: number }>('select extract(epoch from now()) * 1000 as ms')
    return { source: 'the database', skew_ms: now() - Number(rows[0]!.ms) }
  } catch {
    return null
  } finally {
    await database.close()
  }
}

/** Null: it does not respond, which its own check reports, or its response has no date. */
async function readServer(config: Config, url: string, now: () => number): Promise<Reading | null> {
  const response = await askOperatorsServer(config, { url, method: 'HEAD' }).catch(() => null)
  const ms = Date.parse(response?.headers.date ?? '')
  return Number.isNaN(ms) ? null : { source: new URL(url).host, skew_ms: now() - ms }
}

/** Whether systemd keeps the clock right. */
async function askSystem(): Promise<Finding> {
  const args = ['show', '--property=NTPSynchronized', '--value']
  const printed = await promisify(execFile)('timedatectl', args, { timeout: PROGRAM_MS_MAX }).catch(() => null)
  const is_synchronised = printed?.stdout.trim()
  if (is_synchronised === 'yes') return ok('clock', 'synchronised by NTP')
  if (is_synchronised === 'no') return warning('clock', 'NTP does not keep the clock right.', REMEDY)
  return skipped('clock', 'no server of the settings reports its time, and timedatectl does not respond')
}
