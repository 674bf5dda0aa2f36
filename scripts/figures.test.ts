// The figures count what their names say: lengths of functions, factories, and the arrows inside a room.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { circlesOf, readBoxes } from './arrows/boxes.ts'
import { readFunctions } from './figures/functions.ts'
import { parse } from './source/parse.ts'

test('each function is counted with its name and its lines', () => {
  const text = `
export function one() {
  return [1].map((a) => a)
}
const two = async () => {
  await one()
}
class Three {
  #four(): void {}
}
test('a promise', () => {
})
`
  assert.deepEqual(
    readFunctions(parse('a.ts', text)).map(({ name, line, lines }) => ({ name, line, lines })),
    [
      { name: 'one', line: 2, lines: 3 },
      { name: 'a function', line: 3, lines: 1 },
      { name: 'two', line: 5, lines: 3 },
      { name: '#four', line: 9, lines: 1 },
      { name: "test('a promise')", line: 11, lines: 2 },
    ],
  )
})

test('a factory has state, functions over it, and returns them', () => {
  const isFactory = (body: string) => readFunctions(parse('a.ts', `function made() {\n${body}\n}`))[0]!.is_factory
  assert.ok(isFactory('let count = 0\nconst next = () => ++count\nreturn { next }'))
  assert.ok(isFactory('const kept = new Map()\nfunction get() {}\nreturn get'))
  assert.ok(isFactory('const kept = []\nfunction add() {}\nreturn { size: 1, clear: () => add() }'))
  assert.ok(!isFactory('const next = () => 1\nreturn { next }'))
  assert.ok(!isFactory('let count = 0\nfunction add() { count++ }\nadd()\nreturn { count }'))
  assert.ok(!isFactory('let count = 0\nreturn count'))
})

test('files and folders of a room are its boxes, and a circle of them is found', () => {
  const source = (path: string, ...files: string[]) => ({
    path,
    lines: [],
    imports: files.map((file) => ({ specifier: file, line: 1, is_type: false, file })),
  })
  const inside = readBoxes('room', [
    source('room/start.ts', 'room/a/one.ts', 'room/a/two.ts', 'other/b.ts'),
    source('room/a/one.ts', 'room/a/two.ts', 'room/b.ts'),
    source('room/a/two.ts'),
    source('room/b.ts', 'room/c/one.ts'),
    source('room/c/one.ts', 'room/a/two.ts'),
    source('other/b.ts', 'room/start.ts'),
  ])
  assert.deepEqual(inside.boxes, ['a', 'b', 'c', 'start'])
  assert.deepEqual([...inside.arrows.keys()].sort(), ['a -> b', 'b -> c', 'c -> a', 'start -> a'])
  assert.deepEqual(circlesOf(inside), [['a', 'b', 'c']])
})
