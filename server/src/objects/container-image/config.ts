// The config of an image: how its server starts and stops. Values of a stranger: each is checked and bounded here.
import { constants } from 'node:os'
import { posix } from 'node:path'
import { documentOf, textOf } from './manifest.ts'
import { imageRefused } from './refusal.ts'

/** Words of the entrypoint, and of the command. */
const WORDS_MAX = 64
/** Bytes of one word of them. */
const WORD_BYTES_MAX = 4_096
/** Variables of an image. */
const VARIABLES_MAX = 256
/** Bytes of one variable, with its name. */
const VARIABLE_BYTES_MAX = 32 * 1024
/** Bytes of the working folder of an image. */
const PATH_BYTES_MAX = 1_024
/** Number of a user or group of an image. */
const ID_MAX = 65_535
/** Users and groups read from one file of the image. */
const LINES_MAX = 10_000
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/
/** Signals that a server cannot handle. SIGKILL is what follows the grace in any case. */
const NO_STOP_SIGNALS = new Set(['SIGKILL', 'SIGSTOP'])

/** `name:group` as written in the config. */
export type ImageConfig = {
  entrypoint: string[]
  cmd: string[]
  env: Record<string, string>
  working_folder: string
  /** Name of a signal. */
  stop_signal: NodeJS.Signals
  user: string
  /** SHA-256 of the uncompressed tar of each layer. */
  diff_ids: string[]
}

/** The user that the server sees itself as. */
export type ImageUser = { uid: number; gid: number }

/** What a start of the image needs to know. Stored with the build. */
export type ImageStart = Omit<ImageConfig, 'user' | 'diff_ids'> & ImageUser

/** Throws ApiError ARCHIVE_INVALID. */
export function readImageConfig(document: Record<string, unknown>): ImageConfig {
  const own = document.config === undefined || document.config === null ? {} : documentOf(document.config, 'config')
  const rootfs = documentOf(document.rootfs, 'rootfs')
  if (!Array.isArray(rootfs.diff_ids)) throw imageRefused('not_json', 'rootfs.diff_ids')
  return {
    entrypoint: wordsOf(own.Entrypoint),
    cmd: wordsOf(own.Cmd),
    env: variablesOf(own.Env),
    working_folder: folderOf(own.WorkingDir),
    stop_signal: signalOf(own.StopSignal),
    user: own.User === undefined || own.User === null ? '' : textOf(own.User, 'config.User'),
    diff_ids: rootfs.diff_ids.map((id: unknown) => {
      const hex = /^sha256:([0-9a-f]{64})$/.exec(textOf(id, 'rootfs.diff_ids'))?.[1]
      if (hex === undefined) throw imageRefused('digest_algorithm', String(id))
      return hex
    }),
  }
}

/**
 * The numbers of `user`, `uid`, `user:group` or `uid:gid`. `passwd` and `group`: the files of the image. Without a group it is
 * the user's, and 0 for a number without a line.
 */
export function resolveUser(user: string, passwd: string, group: string): ImageUser {
  const [name = '', group_name] = user.split(':', 2)
  const line = name === '' ? null : lineOf(passwd, name, 2)
  const uid = name === '' ? 0 : idOf(line?.[2] ?? name, user)
  const own_gid = line === null ? 0 : idOf(line[3] ?? '', user)
  if (group_name === undefined || group_name === '') return { uid, gid: own_gid }
  return { uid, gid: idOf(lineOf(group, group_name, 2)?.[2] ?? group_name, user) }
}

/** The line whose first member, or whose number, is `name`. */
function lineOf(text: string, name: string, number_at: number): string[] | null {
  const lines = text.split('\n', LINES_MAX).map((line) => line.split(':'))
  const named = lines.find((line) => line[0] === name)
  return named ?? lines.find((line) => /^\d+$/.test(name) && line[number_at] === name) ?? null
}

function idOf(text: string, user: string): number {
  if (!/^\d+$/.test(text)) throw imageRefused('user', user)
  if (Number(text) > ID_MAX) throw imageRefused('user_too_high', user)
  return Number(text)
}

function wordsOf(value: unknown): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw imageRefused('not_json', 'config.Entrypoint')
  const words = value.map((word: unknown) => textOf(word, 'config.Entrypoint'))
  if (words.length > WORDS_MAX) throw imageRefused('command')
  if (words.some((word) => word.includes('\0') || Buffer.byteLength(word) > WORD_BYTES_MAX)) {
    throw imageRefused('command')
  }
  return words
}

function variablesOf(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {}
  if (!Array.isArray(value) || value.length > VARIABLES_MAX) throw imageRefused('environment', 'config.Env')
  const variables: Record<string, string> = {}
  for (const item of value) {
    const text = textOf(item, 'config.Env')
    const equals = text.indexOf('=')
    const name = equals === -1 ? text : text.slice(0, equals)
    const is_valid = VARIABLE_NAME.test(name) && !text.includes('\0') && Buffer.byteLength(text) <= VARIABLE_BYTES_MAX
    if (!is_valid) throw imageRefused('environment', name)
    variables[name] = equals === -1 ? '' : text.slice(equals + 1)
  }
  return variables
}

function folderOf(value: unknown): string {
  if (value === undefined || value === null || value === '') return '/'
  const text = textOf(value, 'config.WorkingDir')
  const path = posix.normalize(text).replace(/(?<=.)\/$/, '')
  const is_plain = posix.isAbsolute(text) && !text.split('/').includes('..') && !text.includes('\0')
  if (!is_plain || Buffer.byteLength(text) > PATH_BYTES_MAX) throw imageRefused('working_folder', text)
  return path
}

/** A name with or without SIG, or a number. */
function signalOf(value: unknown): NodeJS.Signals {
  if (value === undefined || value === null || value === '') return 'SIGTERM'
  const text = textOf(value, 'config.StopSignal').toUpperCase()
  const name = text.startsWith('SIG') ? text : `SIG${text}`
  const found = (Object.entries(constants.signals) as [NodeJS.Signals, number][]).find(
    ([signal, number]) => signal === name || String(number) === text,
  )
  if (found === undefined || NO_STOP_SIGNALS.has(found[0])) throw imageRefused('stop_signal', text)
  return found[0]
}
