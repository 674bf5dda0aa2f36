// Reads settings by the table of settings.ts, and collects what is wrong with them.
import { isIP } from 'node:net'
import type { PortRange } from '@musterhost/contract'
import { SETTINGS, type Setting, type SettingName } from './settings.ts'

type Table = typeof SETTINGS
type NameOf<Kind extends Setting['kind']> = {
  [Name in SettingName]: Table[Name]['kind'] extends Kind ? Name : never
}[SettingName]
/** Settings whose value needs no other one. */
export type DefaultedName = {
  [Name in SettingName]: Table[Name] extends { kind: 'port_ranges' } | { default: null } ? never : Name
}[SettingName]
/** One argument more where the table has no default. */
type Otherwise<Name extends SettingName, Value> = Table[Name]['default'] extends null ? [otherwise: Value] : []
type ChoiceOf<Name extends NameOf<'choice'>> = Table[Name]['of'][number]

type NumberName = NameOf<'integer' | 'seconds' | 'hours' | 'days' | 'megabytes'>

const HOUR_MS = 3_600_000
/** What a number of a kind is multiplied by: times become milliseconds, sizes become bytes. */
const UNITS = { integer: 1, seconds: 1_000, hours: HOUR_MS, days: 24 * HOUR_MS, megabytes: 1_000_000 } as const

export class SettingsReader {
  /** A sentence for each mistake. */
  readonly mistakes: string[] = []
  readonly #env: Readonly<Record<string, string | undefined>>

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env
  }

  isSet(name: SettingName): boolean {
    return Boolean(this.#env[name]?.trim())
  }

  /** The text of the environment; empty when it is not set. */
  given(name: SettingName): string {
    return this.#textOf(name, '')
  }

  /** The value by the kind of the setting. */
  value(name: DefaultedName): string | number | string[] {
    const { kind } = SETTINGS[name]
    if (kind === 'text') return this.text(name as NameOf<'text'>)
    if (kind === 'url') return this.url(name as NameOf<'url'>)
    if (kind === 'domain') return this.domain(name as NameOf<'domain'>)
    if (kind === 'list') return this.list(name as NameOf<'list'>)
    if (kind === 'name_servers') return this.nameServers(name as NameOf<'name_servers'>)
    if (kind === 'choice') return this.choice(name as NameOf<'choice'>)
    return this.number(name as NumberName)
  }

  /** An empty value counts as not set. */
  text(name: NameOf<'text' | 'url'>): string {
    return this.#textOf(name, SETTINGS[name].default)
  }

  textOrNull(name: NameOf<'text'>): string | null {
    return this.text(name) || null
  }

  /** In milliseconds or bytes where the kind is a time or a size. */
  number<Name extends NumberName>(name: Name, ...[otherwise]: Otherwise<Name, number>): number {
    const { kind, default: value, max } = SETTINGS[name]
    return this.#integer(name, otherwise ?? value ?? 0, max) * UNITS[kind]
  }

  /** A number of which 0 stands for none. */
  numberOrNull<Name extends NumberName>(name: Name, ...otherwise: Otherwise<Name, number>): number | null {
    return this.number(name, ...otherwise) || null
  }

  choice<Name extends NameOf<'choice'>>(name: Name, ...[computed]: Otherwise<Name, ChoiceOf<Name>>): ChoiceOf<Name> {
    const { of, default: value } = SETTINGS[name]
    const allowed: readonly ChoiceOf<Name>[] = of
    const otherwise = (computed ?? value) as ChoiceOf<Name>
    const text = this.#textOf(name, otherwise)
    const found = allowed.find((item) => item === text)
    if (found === undefined) {
      this.mistakes.push(`${name} must be one of ${allowed.join(', ')}, not ${JSON.stringify(text)}.`)
    }
    return found ?? otherwise
  }

  list(name: NameOf<'list' | 'name_servers' | 'port_ranges'>): string[] {
    return this.#textOf(name, SETTINGS[name].default)
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
  }

  domain(name: NameOf<'domain'>): string {
    const value = this.#textOf(name, SETTINGS[name].default).toLowerCase()
    // A browser reads a name whose last label is digits as an address.
    const is_name =
      /^(?!-)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/.test(value) && !/(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(value)
    if (!is_name) this.mistakes.push(`${name} is not a domain name.`)
    return value
  }

  url(name: NameOf<'url'>): string {
    const value = this.text(name)
    if (!isUrl(value, /^https?:\/\//)) this.mistakes.push(`${name} must be an http(s):// address.`)
    return value
  }

  /** Addresses with or without a port. */
  nameServers(name: NameOf<'name_servers'>): string[] {
    const servers = this.list(name)
    for (const server of servers) {
      const address = /^(?:\[(?<v6>[0-9a-f:]+)\]|(?<v4>[0-9.]+))(?::\d{1,5})?$/i.exec(server)?.groups
      if (isIP(address?.v6 ?? address?.v4 ?? server) === 0) {
        this.mistakes.push(`${name} names ${JSON.stringify(server)}, which is not an address.`)
      }
    }
    return servers
  }

  portRanges(name: NameOf<'port_ranges'>): PortRange[] {
    return this.list(name).map((item) => {
      const [, first, last] = /^(\d{1,5})\s*-\s*(\d{1,5})$/.exec(item) ?? []
      const range = { min: Number(first ?? 0), max: Number(last ?? 0) }
      if (range.min >= 1_024 && range.min <= range.max && range.max <= 65_535) return range
      this.mistakes.push(`${name} names ${JSON.stringify(item)}, which is not a range within 1024-65535.`)
      return range
    })
  }

  #textOf(name: SettingName, otherwise: string): string {
    return this.#env[name]?.trim() || otherwise
  }

  #integer(name: SettingName, otherwise: number, max: number): number {
    const value = this.#textOf(name, String(otherwise))
    if (/^\d{1,9}$/.test(value) && Number(value) <= max) return Number(value)
    this.mistakes.push(`${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(value)}.`)
    return otherwise
  }
}

export function isUrl(text: string, scheme: RegExp): boolean {
  return scheme.test(text) && URL.canParse(text)
}
