// The files of a build's archive, as they will be unpacked: noted when the upload completes, which reads all of the
// archive, and asked when a version names a program of the build. A line is a file, `x` before the path of an executable
// one and `-` before all others; a path has no newline.
import type { CheckedFile } from '../../objects/archive/archive.ts'

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
    add({ path, is_executable }) {
      bytes += Buffer.byteLength(path) + 3
      if (bytes <= LIST_BYTES_MAX) lines.push(`${is_executable ? 'x' : '-'} ${path}`)
    },
    text: () => (bytes <= LIST_BYTES_MAX ? lines.join('\n') : null),
  }
}

/** Whether each file is executable, by its path. */
export function readFileList(text: string): Map<string, boolean> {
  return new Map(text.split('\n').map((line) => [line.slice(2), line.startsWith('x')]))
}
