import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isNewerVersion, readElfNeeds } from './elf-file.ts'
import { glibcOfMachine, type ProgramView, withItsNeeds } from './program-needs.ts'

const VIEW: ProgramView = { has: () => true, search_path: '/usr/bin', glibc: '2.36', where: 'on this machine' }

function fileOf(t: TestContext, content: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-needs-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'server')
  writeFileSync(file, content)
  return file
}

function refusalOf(file: string, view: Partial<ProgramView>): string {
  const program = withItsNeeds({ command: './server', file }, './server', { ...VIEW, ...view })
  return 'refused' in program ? `${program.refused}: ${program.message}` : 'started'
}

/** Node itself is a program of the GNU C library here, unless the machine has another one. */
const skip = process.platform !== 'linux' || glibcOfMachine() === null

test('a program that needs a loader or a newer C library than there is gets a sentence that names it', { skip }, () => {
  const node = process.execPath
  assert.equal(refusalOf(node, { glibc: glibcOfMachine() }), 'started')
  assert.equal(refusalOf(node, { glibc: null }), 'started')
  assert.match(
    refusalOf(node, { glibc: '2.5' }),
    /^missing_library: "\.\/server" needs glibc 2\.\d+, and there is 2\.5 on this machine\..*container image/,
  )
  assert.match(
    refusalOf(node, { has: () => false }),
    /^missing_library: .*needs the loader \/lib\S+, and there is no such file on this machine\..*container image/,
  )
})

test('a script whose interpreter is not there is refused with the interpreter', (t) => {
  const has = (path: string): boolean => ['/bin/sh', '/usr/bin/env', '/usr/bin/python3'].includes(path)
  const of = (text: string): string => refusalOf(fileOf(t, text), { has })
  for (const text of ['#!/bin/sh\n', '#!/usr/bin/env python3 -u\n', '#!/usr/bin/env -S node\n', 'text', ''])
    assert.equal(of(text), 'started', text)
  assert.match(of('#!/opt/lua\n'), /^missing_library: .*begins with #!\/opt\/lua, and there is no such file/)
  assert.match(of('#!/usr/bin/env ruby\n'), /^missing_library: .*there is no program ruby on this machine/)
  assert.match(of('#!/bin/sh\r\n'), /^not_executable: .*CR LF/)
})

test('a file that only looks like a program is read within bounds, and nothing is claimed of it', { skip }, (t) => {
  const node = readFileSync(process.execPath).subarray(0, 64 * 1024)
  for (let seed = 1; seed <= 200; seed++) {
    const bytes = Buffer.from(node)
    // A fixed sequence: each round damages other bytes of the header and of the table after it.
    for (let at = 0; at < 24; at++) bytes[16 + ((seed * 7919 + at * 104_729) % 700)] = (seed * 31 + at * 17) % 256
    const fd = openSync(fileOf(t, bytes), 'r')
    try {
      const { loader, glibc } = readElfNeeds(fd)
      assert.ok(loader === null || loader.length <= 256)
      assert.ok(glibc === null || /^\d+\.\d+$/.test(glibc))
    } finally {
      closeSync(fd)
    }
  }
})

test('versions are compared as numbers', () => {
  assert.ok(isNewerVersion('2.38', '2.36') && isNewerVersion('2.10', '2.9') && isNewerVersion('3.0', '2.99'))
  assert.ok(!isNewerVersion('2.36', '2.36') && !isNewerVersion('2.9', '2.10'))
})
