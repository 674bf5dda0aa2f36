import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import {
  createLobby,
  ERROR_CODES,
  type ErrorCode,
  findLobby,
  isOptionalBody,
  joinLobby,
  NO_BODY,
  type Operation,
} from '@musterhost/contract'
import { ERROR_HELP } from '@musterhost/contract/error-help'
import { errorsOf } from '@musterhost/contract/openapi'
import { OPERATIONS } from '@musterhost/contract/operations'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { createReference } from '../../src/http/reference/pages.ts'

const run = promisify(execFile)
const WORDS_MAX = 25
const ID = '00000000-0000-7000-8000-000000000000'
const URL_BASE = 'http://muster.test'
/** The kinds of callers that a variable's token may stand for. */
const CALLERS: Readonly<Record<string, readonly string[]>> = {
  MUSTER_TOKEN: ['user', 'admin', 'cloud'],
  PUBLIC_TOKEN: ['namespace'],
  IDENTITY_TOKEN: ['identity'],
  PLATFORM_TOKEN: ['lobby'],
}
/** Addresses that the platform serves outside of its operations: a site's file, and where a file is uploaded to. */
const OTHER_URLS = ['FILE_URL', 'PRESIGNED_URL']
const GIVEN: Readonly<Record<string, string>> = { GROUP_INVITE_CODE: 'ABCDEFGHJKLM' }

/** The words of each command line of each code, as `sh` reads them. */
const commands = new Map<ErrorCode, string[][]>()

before(async () => {
  const noted = ERROR_CODES.map(async (code) => commands.set(code, await wordsOf(ERROR_HELP[code].command)))
  await Promise.all(noted)
})

test('cause and remedy of every code are plain sentences', () => {
  assert.deepEqual(Object.keys(ERROR_HELP).sort(), [...ERROR_CODES].sort())
  for (const code of ERROR_CODES) {
    const { cause, remedy } = ERROR_HELP[code]
    for (const text of [cause, remedy]) {
      assert.match(text, /^[A-Z`].*\.$/, `${code}: ${text}`)
      assert.equal(text.split('`').length % 2, 1, `${code} leaves a backtick open`)
      for (const sentence of text.split(/(?<=\.)\s+/)) {
        assert.ok(sentence.split(/\s+/).length <= WORDS_MAX, `${code} has a long sentence: ${sentence}`)
      }
    }
    assert.notEqual(cause, remedy, code)
  }
})

test('every command calls an operation that exists, with a token and a body that it takes, or is one of ours', async () => {
  for (const [code, calls] of commands) {
    assert.ok(calls.length > 0, `${code} has no command`)
    for (const words of calls) {
      if (words[0] === 'curl') requireCall(code, words)
      else await requireOwnCommand(code, words)
    }
  }
})

test('a refused find, join or create names the operation that explains it', () => {
  const seat_codes = [findLobby, joinLobby, createLobby].flatMap(({ errors }): string[] => [...errors])
  const explained = ERROR_CODES.filter((code) => seat_codes.includes(code) && /^(MATCHMAKER|CAPTCHA)_/.test(code))
  assert.ok(explained.length > 20)
  for (const code of explained) {
    const ids = commands.get(code)!.map((words) => called(words)?.operation.id)
    assert.ok(ids.includes('logs.explainRay'), `${code} does not name it`)
  }
})

test('the page of a code shows its cause, remedy and command, and all three as text', () => {
  const reference = createReference({ main_url: URL_BASE, version: '0' })
  for (const code of ERROR_CODES) {
    const page = reference.error(code)
    const main = page.slice(page.indexOf('<main'), page.indexOf('</main>'))
    const shown = textOf(main)
    const { cause, remedy, command } = ERROR_HELP[code]
    for (const text of [cause, remedy]) assert.ok(shown.includes(text.replaceAll('`', '')), `${code}: ${text}`)
    assert.ok(shown.includes(command), `${code}: ${command}`)
  }
  const escaped = reference.error('LOBBY_NOT_REACHABLE')
  assert.ok(escaped.includes('PORT_&lt;NAME&gt;'))
  assert.ok(!escaped.includes('<NAME>'))
})

/** Runs the command with functions in the place of its programs, which print their words. */
async function wordsOf(command: string): Promise<string[][]> {
  const names = [...command.matchAll(/\$([A-Z_]+)/g)].map(([, name]) => name!)
  const values = names.map((name) => [name, name.endsWith('_TOKEN') ? name : (GIVEN[name] ?? ID)] as const)
  const env = { ...Object.fromEntries(values), MUSTER_URL: URL_BASE }
  for (const name of OTHER_URLS) Object.assign(env, { [name]: `${URL_BASE}/${name}` })
  const note = (name: string) => `${name}() { printf '%s\\0' ${name} "$@"; printf '\\n\\0'; }`
  const { stdout } = await run('/bin/sh', ['-euc', `${note('curl')}\n${note('npm')}\n${command}`], { env })
  const calls = stdout.split('\n\0')
  assert.equal(calls.pop(), '')
  return calls.map((text) => text.split('\0').slice(0, -1))
}

type Call = { operation: Operation; url: URL; token: string | undefined; body: string | undefined }

/** Null: the address is none of an operation's. */
function called(words: readonly string[]): Call | null {
  const after = (option: string, start = '') =>
    words.find((word, index) => words[index - 1] === option && word.startsWith(start))
  const url = new URL(words.find((word) => word.startsWith(URL_BASE))!)
  const method = after('-X') ?? 'GET'
  const operation = OPERATIONS.find(({ path, method: own }) => own === method && patternOf(path).test(url.pathname))
  const token = after('-H', 'Authorization: ')?.replace('Authorization: Bearer ', '')
  return operation === undefined ? null : { operation, url, token, body: after('-d') }
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}

function requireCall(code: ErrorCode, words: readonly string[]): void {
  const call = called(words)
  const told = `${code}: ${words.join(' ')}`
  if (call === null) {
    assert.ok(
      OTHER_URLS.some((name) => words.includes(`${URL_BASE}/${name}`)),
      told,
    )
    assert.ok(!OPERATIONS.some((operation) => errorsOf(operation).includes(code)), `${code} is an operation's`)
    return
  }
  const { operation, url, token, body } = call
  const kinds = token === undefined ? ['anyone'] : CALLERS[token]!
  assert.ok(
    operation.auth.some((kind) => kinds.includes(kind)),
    `${told} has a token that ${operation.id} does not take`,
  )
  const allowed = operation.query.properties
  for (const name of url.searchParams.keys()) assert.ok(Object.hasOwn(allowed, name), `${told}: ${name}`)
  const sent: unknown = body === undefined ? undefined : JSON.parse(body)
  if (operation.body === NO_BODY) assert.equal(sent, undefined, told)
  else if (sent !== undefined || !isOptionalBody(operation.body))
    assert.deepEqual(createShapeCheck(operation.body)(sent), [], told)
}

async function requireOwnCommand(code: ErrorCode, words: readonly string[]): Promise<void> {
  const [program, ...rest] = words
  assert.equal(program, 'npm', `${code}: ${words.join(' ')}`)
  assert.deepEqual(rest.slice(0, 3), ['run', 'muster', '--'], code)
  const cli = await readFile(new URL('../../../cli/src/commands/platform.ts', import.meta.url), 'utf8')
  assert.ok(cli.includes(`.command('${rest[3]}')`), `${code}: muster has no command ${rest[3]}`)
}

function textOf(html: string): string {
  const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return html.replaceAll(/<[^>]*>/g, '').replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => entities[name]!)
}
