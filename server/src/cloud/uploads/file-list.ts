// The files of a build's archive, as they will be unpacked: noted when the upload completes, which reads all of the
// archive, and asked when a version names a program of the build. A line is a file, `x` before the path of an executable
// one and `-` before all others; a path has no newline. A file that this machine cannot start has a line before its own:
// `!` and the fault.
import type { BuildFile } from '@musterhost/contract/version-check'
import type { CheckedFile } from '../../objects/archive/archive.ts'
import { headFaultText } from '../../objects/archive/program-head.ts'

/**
 * A longer list is not kept, and the program of its build is not checked. 10,000 files with paths of 100 characters
 * fit.
 */
const LIST_BYTES_MAX = 1024 * 1024

export type FileListWriter = { add: (file: CheckedFile) => void; text: () => string | null }

export function createFileList(): FileListWriter {
  const lines: string[] = []
  let bytes = 0
  return {
    add({ path, is_executable, fault }) {
      bytes += Buffer.byteLength(path) + 3 + (fault === null ? 0 : fault.length + 2)
      if (bytes <= LIST_BYTES_MAX && fault !== null) lines.push(`!${fault}`)
      if (bytes <= LIST_BYTES_MAX) lines.push(`${is_executable ? 'x' : '-'} ${path}`)
    },
    text: () => (bytes <= LIST_BYTES_MAX ? lines.join('\n') : null),
  }
}

/** The files by path. */
export function readFileList(text: string): Map<string, BuildFile> {
  const files = new Map<string, BuildFile>()
  let fault: string | null = null
  for (const line of text.split('\n')) {
    if (line.startsWith('!')) {
      fault = headFaultText(line.slice(1))
      continue
    }
    files.set(line.slice(2), { is_executable: line.startsWith('x'), fault })
    fault = null
  }
  return files
}
