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

/**
 * Version of what an edge hands to the next one (edge/hand-over/messages.ts). A release that changes it raises it by one, and
 * still speaks the version before: HAND_OVER_VERSION_MIN. Version 1 was in no release.
 */
export const HAND_OVER_VERSION = 3
export const HAND_OVER_VERSION_MIN = 2

/** Hand-over versions of a program that does not name them: it was made before they were negotiated. */
export const HAND_OVER_BEFORE: HandOverVersions = { min: 2, max: 2 }

export type HandOverVersions = { min: number; max: number }

/** Whether an edge with these versions can hand its connections to one with the others. */
export function handOver(one: HandOverVersions, other: HandOverVersions): boolean {
  return Math.max(one.min, other.min) <= Math.min(one.max, other.max)
}

/**
 * Version of the frames between an edge and a role (trunk-frames.ts). A release that changes them raises it by one, and still
 * speaks the version before: TRUNK_VERSION_MIN. Programs without a common version use HTTP.
 */
export const TRUNK_VERSION = 1
export const TRUNK_VERSION_MIN = 1

/** `version`: of the package, for people. */
export type ProgramVersion = { version: string; wire_version: number; hand_over: HandOverVersions }

export function thisProgram(): ProgramVersion {
  return {
    version: platformVersion(),
    wire_version: WIRE_VERSION,
    hand_over: { min: HAND_OVER_VERSION_MIN, max: HAND_OVER_VERSION },
  }
}
