// What differs between the files of Windows and those of other systems: the form of paths, and whether a file can be marked as
// a program.
import { open } from 'node:fs/promises'
import nodePath from 'node:path'

type PathRules = Pick<typeof nodePath, 'isAbsolute' | 'relative' | 'sep'>

/** Windows has no such marks. */
export const HAS_PROGRAM_MARKS = process.platform !== 'win32'
const SCRIPT = Buffer.from('#!')
const ELF = Buffer.from('\u007fELF', 'latin1')

/** Whether `target` lies in the folder. Both are absolute, without links. `path`: the rules of the system. */
export function isInside(folder: string, target: string, path: PathRules = nodePath): boolean {
  const inside = path.relative(folder, target)
  // From one drive to another there is no relative path.
  return inside !== '..' && !inside.startsWith(`..${path.sep}`) && !path.isAbsolute(inside)
}

/** Whether Linux can run the file as a program: it is a script with `#!`, or an ELF file. */
export async function isProgram(file: string): Promise<boolean> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(ELF.length), 0, ELF.length, 0)
    const head = buffer.subarray(0, bytesRead)
    return head.subarray(0, SCRIPT.length).equals(SCRIPT) || head.equals(ELF)
  } finally {
    await handle.close()
  }
}
