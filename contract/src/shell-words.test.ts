import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shellWords } from './shell-words.ts'

const of = (...args: string[]) =>
  shellWords({
    matchmaker: { game_modes: { a: {}, b: {} }, docker: { args, ports: { game: { protocol: 'http' } } } },
  }).map(({ path, message }) => `${path.at(-1)} ${message}`)

const sentence = (text: string, name: string) => `No shell reads args, so ${text} stays as it is. Write \${${name}}.`

test('arguments in the words of a shell are named with the placeholder, unless a shell reads them', () => {
  assert.deepEqual(of('server', '--port=$PORT', '~/saves', '$HOME/$HOME'), [
    `1 ${sentence('$PORT', 'PORT')}`,
    `2 ${sentence('~', 'HOME')}`,
    `3 ${sentence('$HOME', 'HOME')}`,
  ])
  assert.deepEqual(of('/bin/sh', '-c', 'exec server --port $PORT'), [])
  assert.deepEqual(of('server', `\${PORT}`, '$5', '$PATH', '~bot', 'a~/b', '^$'), [])
})
