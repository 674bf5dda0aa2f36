// What an examination found. A finding that failed has a remedy: a command, or a line to add where a command cannot help.
export const CHECKS = [
  'settings',
  'data folder',
  'platform',
  'ports',
  'sandbox',
  'database',
  'DNS',
  'certificates',
  'disk',
  'clock',
  'mail',
  'captcha provider',
  'stored files',
  'backups',
] as const
export type Check = (typeof CHECKS)[number]

/** `skipped`: the check has nothing to examine here. The message says why. */
type Status = 'ok' | 'warning' | 'failed' | 'skipped'

export type Finding = { check: Check; status: Status; message: string; remedy: string | null }

export const ok = (check: Check, message: string): Finding => ({ check, status: 'ok', message, remedy: null })
export const skipped = (check: Check, message: string): Finding => ({ check, status: 'skipped', message, remedy: null })

export function warning(check: Check, message: string, remedy: string): Finding {
  return { check, status: 'warning', message, remedy }
}

export function failed(check: Check, message: string, remedy: string): Finding {
  return { check, status: 'failed', message, remedy }
}

/** The first line of an error's message. */
export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]!
}
