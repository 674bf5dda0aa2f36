// Which versions of the program may run at the same time, on several nodes, or one after the other during an upgrade.
import { platformVersion } from './platform-version.ts'

/**
 * Version of everything that two versions of the program share while both run: tables, notifications, and requests between
 * roles. A release that changes any of these raises it by one, and still understands the version before.
 */
export const WIRE_VERSION = 1

/** Whether programs with these two wire versions may run at the same time. */
export function workTogether(one: number, other: number): boolean {
  return Math.abs(one - other) <= 1
}

/** `version`: of the package, for people. */
export type ProgramVersion = { version: string; wire_version: number }

export function thisProgram(): ProgramVersion {
  return { version: platformVersion(), wire_version: WIRE_VERSION }
}
