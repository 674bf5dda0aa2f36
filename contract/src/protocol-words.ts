// The protocols of other platforms as people call them, for the hub and the command. Without a schema, which the hub would load.
import type { ReportedProtocol } from './cloud/logs.ts'

const TITLES: Readonly<Record<string, string>> = {
  agones: 'Agones',
  multiplay: 'Multiplay',
  gsdk: 'GSDK',
  gamelift: 'GameLift',
}

/** `name`: of the version config. */
export function protocolTitle(name: string): string {
  return TITLES[name] ?? name
}

/** Example: `Agones: Allocated, not healthy`. */
export function reportedText({ name, state, is_healthy }: ReportedProtocol): string {
  return `${protocolTitle(name)}: ${state}${is_healthy === false ? ', not healthy' : ''}`
}
