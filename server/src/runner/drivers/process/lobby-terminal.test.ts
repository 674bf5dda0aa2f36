import assert from 'node:assert/strict'
import { test } from 'node:test'
import { terminalFault } from './lobby-terminal.ts'

test('a machine without script of util-linux refuses terminals, and the reason names its package', async () => {
  const fault = await terminalFault(['/usr/bin/env', 'PATH=/nonexistent'])
  assert.equal(fault?.refused, 'not_started')
  assert.match(fault.message, /`script` of util-linux .*Debian: bsdutils;.* leaves `terminal` out\. .*No such file/)
  // A program of this name that does something else.
  assert.match((await terminalFault(['/bin/true']))!.message, /this machine makes no terminal/)
})
