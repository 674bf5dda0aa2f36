import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningOf } from './role-log.ts'
import { createTerminal } from './terminal.ts'

function paper(isTTY: boolean): { isTTY: boolean; columns: number; text: string; write(text: string): boolean } {
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

function show(stream: ReturnType<typeof paper>, env: NodeJS.ProcessEnv): string {
  const terminal = createTerminal(stream, env)
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

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/

test('what is not a terminal, asks for no colour or is dumb gets lines without a control character', () => {
  for (const text of [
    show(paper(false), {}),
    show(paper(true), { NO_COLOR: '1' }),
    show(paper(true), { TERM: 'dumb' }),
  ]) {
    assert.doesNotMatch(text, CONTROL)
    assert.match(text, /ok +one +detail +\d+ ms\n/)
    assert.match(text, /failed +two/)
  }
})

test('a terminal gets marks and colours, but none of the control characters that others wrote', () => {
  const text = show(paper(true), { TERM: 'xterm' })
  assert.match(text, /✓/)
  assert.match(text, /evil +\]0;title +31m +text/)
  for (const character of ['\u0007', '\u009b', '\u202e']) assert.equal(text.includes(character), false)
  assert.equal(text.endsWith('ready\n'), true)
})

test('warnings and errors of a log are shown as a sentence, all other lines are not', () => {
  assert.equal(warningOf('{"level":30,"msg":"fine"}'), null)
  assert.equal(warningOf('{"level":40,"msg":"careful"}'), 'careful')
  assert.equal(warningOf('{"level":50,"msg":"broken","err":{"message":"why"}}'), 'broken (why)')
  assert.equal(warningOf('{"level":50,"err":{"message":"why"}}'), 'why')
  for (const line of ['', 'Error: x', '{"level":50', '{"level":"50","msg":1}', '{}'])
    assert.equal(warningOf(line), null)
})
