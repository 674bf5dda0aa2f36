import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seccompFilter } from './seccomp.ts'
import { allowedCalls, SPECIAL_CALLS } from './system-calls.ts'

const ALLOW = 0x7fff_0000
const EPERM = 0x0005_0001
const ENOSYS = 0x0005_0026
const X86_64 = 0xc000_003e
const X86 = 0x4000_0003
const ARM64 = 0xc000_00b7
/** Steps of one run. Jumps go forwards only. */
const STEPS_MAX = 4_096

/** What the kernel's machine returns for a call. */
function decide(filter: Buffer, machine: number, number: number, argument = 0): number {
  const data = new Map([
    [0, number],
    [4, machine],
    [16, argument],
  ])
  let value = 0
  let at = 0
  for (let step = 0; step < STEPS_MAX; step++) {
    const code = filter.readUInt16LE(at * 8)
    const [if_true, if_false] = [filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)]
    const operand = filter.readUInt32LE(at * 8 + 4)
    if (code === 0x06) return operand
    if (code === 0x20) value = data.get(operand)!
    else if (code === 0x05) at += operand
    else {
      const holds = { 21: value === operand, 37: value > operand, 53: value >= operand }[code]
      at += (holds ?? (value & operand) !== 0) ? if_true : if_false
    }
    at++
  }
  throw new Error('The program does not end.')
}

const CASES = [
  { arch: 'x64', machine: 'x86_64', id: X86_64 },
  { arch: 'x64', machine: 'x86', id: X86 },
  { arch: 'arm64', machine: 'arm64', id: ARM64 },
] as const

for (const { arch, machine, id } of CASES) {
  test(`exactly the listed calls are allowed (${machine})`, () => {
    const filter = seccompFilter(arch)!
    const listed = new Set(allowedCalls(machine))
    const special = SPECIAL_CALLS[machine]
    const specials = new Set<number>(Object.values(special))
    for (let number = 0; number < 1_000; number++) {
      if (specials.has(number)) continue
      assert.equal(decide(filter, id, number) === ALLOW, listed.has(number), String(number))
    }
    assert.equal(decide(filter, id, special.clone, 17), ALLOW)
    assert.equal(decide(filter, id, special.clone, 0x1000_0011), EPERM)
    assert.equal(decide(filter, id, special.clone3), ENOSYS)
    assert.equal(decide(filter, id, special.personality, 0xffff_ffff), ALLOW)
    assert.equal(decide(filter, id, special.personality, 0x4_0000), EPERM)
    assert.equal(decide(filter, id, special.socket, 2), ALLOW)
    assert.equal(decide(filter, id, special.socket, 17), EPERM)
    assert.equal(decide(filter, id, 100_000), ENOSYS)
  })
}

test('a call of another machine is refused', () => {
  assert.equal(decide(seccompFilter('x64')!, ARM64, 64), EPERM)
  assert.equal(decide(seccompFilter('arm64')!, X86_64, 1), EPERM)
  assert.equal(decide(seccompFilter('x64')!, X86_64, 0x4000_0000), ENOSYS)
  assert.equal(seccompFilter('riscv64'), null)
})
