// The seccomp filter of lobbies: a program of the kernel's packet filter machine that allows a list of system calls
// (system-calls.ts). All others fail. bubblewrap loads it after the sandbox is complete.
import { type Architecture, allowedCalls, SPECIAL_CALLS } from './system-calls.ts'

/** Instructions of a program that the kernel accepts. */
const INSTRUCTIONS_MAX = 4_096
const INSTRUCTION_BYTES = 8
/** Offsets in struct seccomp_data. */
const NUMBER_AT = 0
const MACHINE_AT = 4
/** The low half of the first argument, on little-endian machines. */
const ARGUMENT_AT = 16
/** Instructions: load a word, jump, return. */
const LOAD = 0x20
const JUMP = 0x05
const JUMP_EQUAL = 0x15
const JUMP_GREATER = 0x25
const JUMP_GREATER_EQUAL = 0x35
const JUMP_ANY_BIT = 0x45
const RETURN = 0x06
/** What a program returns. */
const ALLOW = 0x7fff_0000
const FAIL = 0x0005_0000
const EPERM = 1
export const ENOSYS = 38
/** AUDIT_ARCH_* of the kernel. */
const MACHINE_IDS: Readonly<Record<Architecture, number>> = {
  x86_64: 0xc000_003e,
  x86: 0x4000_0003,
  arm64: 0xc000_00b7,
}
/** CLONE_NEW*: new namespaces. */
export const NEW_NAMESPACES = 0x7e02_0000
/** Values of `personality` that container engines allow; the last one reads it. */
export const PERSONALITIES = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff] as const
/** Address families: raw packets, the kernel's ciphers, sockets of virtual machines. */
export const REFUSED_FAMILIES = [17, 38, 40] as const

type Instruction = { code: number; if_true: number; if_false: number; value: number }

/** The filter for programs of this machine; null where there is none (neither x86_64 nor arm64). */
export function seccompFilter(arch: string = process.arch): Buffer | null {
  if (arch === 'x64') return encode(programFor(['x86_64', 'x86']))
  return arch === 'arm64' ? encode(programFor(['arm64'])) : null
}

function programFor(machines: readonly Architecture[]): Instruction[] {
  const program = [load(MACHINE_AT)]
  for (const machine of machines) {
    const calls = callsOf(machine)
    // A jump of a condition reaches 255 instructions; the plain jump reaches all.
    program.push(jump(JUMP_EQUAL, MACHINE_IDS[machine], 1, 0), jump(JUMP, calls.length, 0, 0), ...calls)
  }
  return [...program, fail(EPERM)]
}

function callsOf(machine: Architecture): Instruction[] {
  const special = SPECIAL_CALLS[machine]
  const calls = allowedCalls(machine)
  const program = [load(NUMBER_AT)]
  // The library falls back to `clone`, whose flags a filter can read.
  program.push(jump(JUMP_EQUAL, special.clone3, 0, 1), fail(ENOSYS))
  program.push(...onCall(special.clone, [jump(JUMP_ANY_BIT, NEW_NAMESPACES, 0, 1), fail(EPERM), allow()]))
  program.push(...onCall(special.personality, [...PERSONALITIES.flatMap(allowValue), fail(EPERM)]))
  const families = REFUSED_FAMILIES.flatMap((family) => [jump(JUMP_EQUAL, family, 0, 1), fail(EPERM)])
  program.push(...onCall(special.socket, [...families, allow()]))
  for (const [first, last] of rangesOf(calls)) {
    program.push(jump(JUMP_GREATER_EQUAL, first, 0, 2), jump(JUMP_GREATER, last, 1, 0), allow())
  }
  // A call that is newer than this list is unknown, so that libraries fall back to an older one.
  const newest = Math.max(special.clone3, ...calls)
  return [...program, jump(JUMP_GREATER, newest, 0, 1), fail(ENOSYS), fail(EPERM)]
}

/** `then` reads the first argument and always returns. */
function onCall(number: number, then: readonly Instruction[]): Instruction[] {
  return [jump(JUMP_EQUAL, number, 0, then.length + 1), load(ARGUMENT_AT), ...then]
}

const allowValue = (value: number): Instruction[] => [jump(JUMP_EQUAL, value, 0, 1), allow()]

/** Runs of consecutive numbers, as their first and last one. */
function rangesOf(numbers: readonly number[]): [number, number][] {
  const ranges: [number, number][] = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

const load = (at: number): Instruction => ({ code: LOAD, if_true: 0, if_false: 0, value: at })
const allow = (): Instruction => ({ code: RETURN, if_true: 0, if_false: 0, value: ALLOW })
const fail = (error: number): Instruction => ({ code: RETURN, if_true: 0, if_false: 0, value: FAIL + error })
const jump = (code: number, value: number, if_true: number, if_false: number): Instruction => ({
  code,
  if_true,
  if_false,
  value,
})

/** struct sock_filter, little-endian. */
function encode(program: readonly Instruction[]): Buffer {
  if (program.length > INSTRUCTIONS_MAX) throw new Error(`A filter has at most ${INSTRUCTIONS_MAX} instructions.`)
  const bytes = Buffer.alloc(program.length * INSTRUCTION_BYTES)
  for (const [index, { code, if_true, if_false, value }] of program.entries()) {
    const at = index * INSTRUCTION_BYTES
    bytes.writeUInt16LE(code, at)
    bytes.writeUInt8(if_true, at + 2)
    bytes.writeUInt8(if_false, at + 3)
    bytes.writeUInt32LE(value, at + 4)
  }
  return bytes
}
