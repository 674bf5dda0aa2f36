// The filter of system calls of lobbies (../seccomp.ts) as a profile for container engines. The engine's own profile allows
// more: among others io_uring, the kernel's ciphers, and the memory of other processes.
import { ENOSYS, NEW_NAMESPACES, PERSONALITIES, REFUSED_FAMILIES } from '../seccomp.ts'
import { ALLOWED_NAMES } from '../system-calls.ts'

/** x32 is a second numbering of the calls of x86_64. */
const MACHINES: Readonly<Record<string, readonly string[]>> = {
  x64: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'],
  arm64: ['SCMP_ARCH_AARCH64'],
}

type Condition = { index: 0; value: number; valueTwo?: number; op: string }

/** JSON; null where there is none for this machine (neither x86_64 nor arm64). */
export function seccompProfile(arch: string = process.arch): string | null {
  const architectures = MACHINES[arch]
  if (architectures === undefined) return null
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures,
    syscalls: [
      allow(ALLOWED_NAMES),
      allow(['clone'], { index: 0, value: NEW_NAMESPACES, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }),
      // The library falls back to `clone`.
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      ...PERSONALITIES.map((value) => allow(['personality'], { index: 0, value, op: 'SCMP_CMP_EQ' })),
      ...otherFamilies().map((condition) => allow(['socket'], condition)),
    ],
  })
}

function allow(names: readonly string[], condition?: Condition): object {
  return { names, action: 'SCMP_ACT_ALLOW', ...(condition && { args: [condition] }) }
}

/** A rule cannot have two conditions on one argument, so the families between the refused ones are named one by one. */
function otherFamilies(): Condition[] {
  const refused: readonly number[] = REFUSED_FAMILIES
  const last = Math.max(...refused)
  const below = Array.from({ length: last }, (_, family) => family).filter((family) => !refused.includes(family))
  return [
    ...below.map((value): Condition => ({ index: 0, value, op: 'SCMP_CMP_EQ' })),
    { index: 0, value: last, op: 'SCMP_CMP_GT' },
  ]
}
