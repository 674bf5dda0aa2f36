// The edge's ports that the last start chose, in the data folder. A command of the same user finds the platform by them where
// no setting names the ports. The file has no host, so a foreign folder cannot lead a command to another machine.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SETTINGS = ['MUSTER_EDGE_HTTP_PORT', 'MUSTER_EDGE_HTTPS_PORT'] as const

/** The two settings, resolved. */
export type ChosenPorts = Record<(typeof SETTINGS)[number], string>

export function writeChosenPorts(data_dir: string, ports: ChosenPorts): void {
  const file = chosenPortsFile(data_dir)
  writeFileSync(`${file}.new`, `${JSON.stringify(ports)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Empty where there is no such file, or what it contains are no ports. */
export function readChosenPorts(data_dir: string): Partial<ChosenPorts> {
  try {
    const read = JSON.parse(readFileSync(chosenPortsFile(data_dir), 'utf8')) as Partial<Record<string, unknown>>
    return Object.fromEntries(
      SETTINGS.flatMap((name) => (/^\d{1,5}$/.test(String(read[name])) ? [[name, String(read[name])]] : [])),
    )
  } catch {
    return {}
  }
}

function chosenPortsFile(data_dir: string): string {
  return join(data_dir, 'chosen-ports.json')
}
