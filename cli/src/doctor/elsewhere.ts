// `muster doctor` for a platform that runs on another machine: its api role runs the checks.
import { ApiError, runAdminChecks } from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { isPlatformChosen, localPlatform, openSession, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import type { ShownFinding } from './report.ts'

export type DoctorOptions = GlobalOptions & { here?: true; removeNetworks?: true }

/** Null: this machine is to be examined, which has the chosen platform, or none is chosen. */
export async function platformElsewhere(terminal: Terminal, options: DoctorOptions): Promise<Session | null> {
  if (options.here || options.removeNetworks || !(await isPlatformChosen(terminal, options))) return null
  const [session, own] = await Promise.all([openSession(terminal, options), localPlatform(terminal)])
  return session.url === own?.url ? null : session
}

/** Throws a Failure for a caller who is no administrator. */
export async function examineElsewhere({ client, url }: Session): Promise<ShownFinding[]> {
  try {
    return (await client.call(runAdminChecks, {})).findings
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error
    throw new Failure(`The checks of the platform at ${url} are for its administrators.`, {
      exit_code: EXIT.not_allowed,
      remedy: 'Examine this machine: muster doctor --here',
      cause: error,
    })
  }
}
