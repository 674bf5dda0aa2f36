import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningOf } from './role-log.ts'
import { SupervisorTerminal } from './terminal.ts'

function recordedStream(isTTY: boolean): {
  isTTY: boolean
  columns: number
  text: string
  write(text: string): boolean
} {
  return {
    isTTY,
    columns: 80,
    text: '',
    write(text) {
      this.text += text
      return true
    },
  }
}

function show(stream: ReturnType<typeof recordedStream>, env: NodeJS.ProcessEnv): string {
  const terminal = new SupervisorTerminal(stream, env)
  terminal.title('Muster')
  const first = terminal.step('one')
  const second = terminal.step('two')
  first.done('detail')
  terminal.warn('api', 'evil \u001b]0;title\u0007 \u009b31m \u202e text')
  second.failed()
  terminal.table([['play', 'http://localhost']])
  terminal.line('ready')
  return stream.text
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they must be absent.
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/

test('a file, a terminal without colours and a dumb one get lines without control characters', () => {
  for (const text of [
    show(recordedStream(false), {}),
    show(recordedStream(true), { NO_COLOR: '1' }),
    show(recordedStream(true), { TERM: 'dumb' }),
  ]) {
    assert.doesNotMatch(text, CONTROL)
    assert.match(text, /ok +one +detail +\d+ ms\n/)
    assert.match(text, /failed +two/)
  }
})

test('a terminal gets marks and colours, and no control character of another program', () => {
  const text = show(recordedStream(true), { TERM: 'xterm' })
  assert.match(text, /✓/)
  assert.match(text, /evil +\]0;title +31m +text/)
  for (const character of ['\u0007', '\u009b', '\u202e']) assert.equal(text.includes(character), false)
  assert.equal(text.endsWith('ready\n'), true)
})

test('only warnings and errors of a log are shown, each as a sentence', () => {
  assert.equal(warningOf('{"level":30,"msg":"fine"}'), null)
  assert.equal(warningOf('{"level":40,"msg":"careful"}'), 'careful')
  assert.equal(warningOf('{"level":50,"msg":"broken","err":{"message":"why"}}'), 'broken (why)')
  assert.equal(warningOf('{"level":50,"err":{"message":"why"}}'), 'why')
  for (const line of ['', 'Error: x', '{"level":50', '{"level":"50","msg":1}', '{}'])
    assert.equal(warningOf(line), null)
})
