// Examines this machine and the settings of a platform, running or not. The checks use what the roles use at their start, so
// what passes here starts. Nothing that lasts is changed: trial files are in a folder that is removed.
import type { Config } from '../config/config.ts'
import { ConfigError, readConfig } from '../config/read-config.ts'
import { isLocked } from '../supervisor/lock.ts'
import { examineBackups } from './backups.ts'
import { examineCertificates } from './certificates.ts'
import { examineClock } from './clock.ts'
import { examineDatabase } from './database.ts'
import { examineNames } from './dns.ts'
import { CHECKS, type Check, type Finding, failed, messageOf, ok } from './finding.ts'
import { examineDataFolder, examineDisk, examineSandbox } from './machine.ts'
import { examinePlatform, examinePorts } from './platform.ts'
import { examineCaptcha, examineMail, examineStore } from './services.ts'

/** One check. Checks have shorter limits of their own; this one bounds what they wait for together. */
const CHECK_MS_MAX = 30_000

export { removeLeftNetworks } from './remove-networks.ts'
export type { Finding }
export type Examination = { data_folder: string | null; is_running: boolean; findings: Finding[] }

/** `now_ms`: the wall clock that is compared with other machines. */
export async function examine(env: NodeJS.ProcessEnv, now_ms: number): Promise<Examination> {
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const findings = error.mistakes.map((mistake) => failed('settings', mistake, remedyOf(mistake)))
    return { data_folder: null, is_running: false, findings }
  }
  const settings = ok('settings', `${config.mode}, ${config.roles.join(', ')}`)
  let is_running: boolean
  try {
    is_running = isLocked(config.data_dir)
  } catch (error) {
    const message = `The data folder ${config.data_dir} is not this user's: ${messageOf(error)}.`
    const findings = [
      settings,
      failed('data folder', message, `sudo muster doctor    (or as the user of the platform)`),
    ]
    return { data_folder: config.data_dir, is_running: false, findings }
  }
  const ports = inTime('ports', examinePorts(config, env, is_running))
  const findings = await Promise.all([...checksOf(config, is_running, now_ms), ports])
  const in_order = findings.flat().toSorted((one, other) => CHECKS.indexOf(one.check) - CHECKS.indexOf(other.check))
  return { data_folder: config.data_dir, is_running, findings: [settings, ...in_order] }
}

/** For a role of the platform that runs: its settings are valid, and its ports are in use. */
export async function examineRunning(config: Config, now_ms: number): Promise<Finding[]> {
  return (await Promise.all(checksOf(config, true, now_ms))).flat()
}

function checksOf(config: Config, is_running: boolean, now_ms: number): Promise<Finding[]>[] {
  return [
    inTime('data folder', examineDataFolder(config)),
    inTime('platform', examinePlatform(config, is_running)),
    inTime('sandbox', examineSandbox(config, is_running)),
    inTime('database', examineDatabase(config)),
    inTime('DNS', examineNames(config)),
    inTime('certificates', examineCertificates(config, now_ms)),
    inTime('disk', examineDisk(config)),
    inTime('clock', examineClock(config, now_ms)),
    inTime('mail', examineMail(config)),
    inTime('captcha provider', examineCaptcha(config)),
    inTime('stored files', examineStore(config, now_ms)),
    inTime('backups', examineBackups(config, is_running, now_ms)),
  ]
}

/** The setting that a mistake names, as a command. */
function remedyOf(mistake: string): string {
  const name = /\b[A-Z]+_[A-Z_]+\b/.exec(mistake)?.[0]
  return name === undefined ? 'muster start --help' : `unset ${name}    (docs/configuration.md has its values)`
}

/** A check that throws has found a fault that no check knows. */
async function inTime(check: Check, findings: Promise<Finding[]>): Promise<Finding[]> {
  const late = Promise.withResolvers<Finding[]>()
  const timer = setTimeout(() => {
    late.resolve([failed(check, `The check had no result after ${CHECK_MS_MAX / 1000} s.`, 'muster doctor')])
  }, CHECK_MS_MAX)
  try {
    return await Promise.race([findings, late.promise])
  } catch (error) {
    return [failed(check, messageOf(error), 'muster doctor')]
  } finally {
    clearTimeout(timer)
  }
}
