import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvCell, visibleText } from './visible-text.ts'

test('nothing that drives a terminal, or turns or hides a text, is left in what is shown', () => {
  const told: Record<string, string> = {
    'plain\ttext, ümläut, 日本, 🎲': 'plain\ttext, ümläut, 日本, 🎲',
    '\u001b[31mred\u001b[0m': '\\x1b[31mred\\x1b[0m',
    '\u001b]52;c;ZXZpbA==\u0007': '\\x1b]52;c;ZXZpbA==\\x07',
    '\u009b2J\u0000\r\n': '\\x9b2J\\x00\\x0d\\x0a',
    'abc\u202etxt.exe\u2066\u2028': 'abc\\u{202e}txt.exe\\u{2066}\\u{2028}',
    '\ud800half': '\ufffdhalf',
  }
  for (const [text, shown] of Object.entries(told)) assert.equal(visibleText(text), shown)
  for (let code = 0; code < 0x300; code++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    assert.doesNotMatch(visibleText(String.fromCodePoint(code)), /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/)
  }
})

test('no cell of a CSV file is a formula, ends its row, or ends itself', () => {
  const told: Record<string, string> = {
    plain: 'plain',
    '': '',
    'a,b': '"a,b"',
    'say "no"': '"say ""no"""',
    '=1+1': `"'=1+1"`,
    '+1': `"'+1"`,
    '-1': `"'-1"`,
    '@SUM(A1)': `"'@SUM(A1)"`,
    '\t=1': `"' =1"`,
    ' =1': `"' =1"`,
    '"=1': `"'""=1"`,
    "'=1": `"''=1"`,
    '＝1': `"'＝1"`,
    'a\r\n=cmd|x': 'a\\x0d\\x0a=cmd|x',
    '{"a":"=1"}': '"{""a"":""=1""}"',
  }
  for (const [text, cell] of Object.entries(told)) assert.equal(csvCell(text), cell, text)
})
