// The completion scripts in the real shells: what TAB offers.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createMuster } from './program.ts'

test('bash completes commands, the commands below them, options and their values', async (t) => {
  const muster = createMuster(t)
  const { stdout: script, code } = await muster.run(['completion', 'bash'])
  assert.equal(code, 0)
  const file = join(muster.cwd, 'completion.bash')
  writeFileSync(file, script)
  const complete = (...words: string[]): string[] => {
    const line = words.map((word) => `'${word}'`).join(' ')
    const program = `source ${file}; COMP_WORDS=(muster ${line}); COMP_CWORD=${words.length}; _muster; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', program], { encoding: 'utf8' })
    assert.equal(stderr, '')
    return stdout.split('\n').filter((word) => word !== '')
  }
  assert.deepEqual(complete('swa'), ['swarm'])
  assert.deepEqual(complete('context', 'us'), ['use'])
  assert.deepEqual(complete('swarm', '--patt'), ['--pattern'])
  assert.deepEqual(complete('swarm', '--pattern', ''), ['idle', 'steady', 'burst'])
  assert.ok(complete('').includes('doctor'))
  assert.deepEqual(complete('no-such-command', 'swa'), ['swarm'])
})

for (const shell of ['zsh', 'fish'] as const) {
  test(`the script for ${shell} is one that ${shell} reads`, async (t) => {
    const muster = createMuster(t)
    const { stdout, code } = await muster.run(['completion', shell])
    assert.equal(code, 0)
    assert.match(stdout, /swarm/)
    if (spawnSync(shell, ['--version']).error !== undefined) {
      t.diagnostic(`${shell} is not installed: its script was made and not read`)
      return
    }
    const { status, stderr } = spawnSync(shell, ['-n'], { input: stdout, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })
}

test('another shell is wrong usage', async (t) => {
  assert.equal((await createMuster(t).run(['completion', 'tcsh'])).code, 2)
})
