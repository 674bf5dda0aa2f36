// The reasons of ARCHIVE_INVALID, each with a sentence for the developer.
import { ApiError } from '@musterhost/contract'

const SENTENCES = {
  // The archive as a whole.
  not_an_archive: 'It is not a tar, tar.gz or zip archive.',
  empty: 'It contains no file.',
  truncated: 'It ends too early.',
  trailing_data: 'Data follows after its end.',
  corrupt: 'Its structure is damaged.',
  checksum: 'The bytes do not have the checksum that the archive names.',
  too_many_entries: 'It contains more files and folders than the platform accepts.',
  too_many_bytes: 'It unpacks to more bytes than the platform accepts.',
  ratio: 'It is compressed more than any build is.',

  // The type of an entry.
  link: 'It is a link; only files and folders are unpacked.',
  device: 'It is a device; only files and folders are unpacked.',
  fifo: 'It is a pipe; only files and folders are unpacked.',
  socket: 'It is a socket; only files and folders are unpacked.',
  sparse: 'It is a sparse file; pack it as a plain one.',
  unknown_type: 'It is neither a file nor a folder.',
  encrypted: 'It is encrypted.',
  compression_method: 'It is compressed by a method other than deflate.',
  size_mismatch: 'Its length differs from the length in the archive.',
  overlap: 'It shares its bytes with another entry.',

  // The name of an entry.
  empty_name: 'A name between two slashes is empty.',
  encoding: 'The name is not UTF-8.',
  absolute: 'The path is absolute.',
  dots: 'A name is "." or "..".',
  backslash:
    'The name has a backslash; folders are separated by a slash. Pack it with tar, 7-Zip or a newer PowerShell.',
  colon: 'The name has a colon.',
  control_character: 'The name has a control character, or one that is not visible.',
  percent_encoded: 'The name has a dot, a slash or a NUL in percent encoding.',
  trailing_dot_or_space: 'A name ends in a dot or a space, or begins with a space.',
  reserved_name: 'A name is reserved by Windows.',
  path_too_long: 'The path is too long.',
  path_too_deep: 'The path has too many folders.',
  duplicate: 'There is another entry of this path.',
  twin: 'The path differs from another one only in upper and lower case or in how accents are written.',
  not_a_folder: 'A folder of this path is a file in another entry.',
} as const

export type ArchiveFault = keyof typeof SENTENCES

/** Characters of an entry's name in a message. */
const ENTRY_LENGTH_SHOWN_MAX = 200

/** ApiError ARCHIVE_INVALID with `metadata: { entry, reason }`; `entry` is null when the archive itself is at fault. */
export function archiveRefused(reason: ArchiveFault, entry: string | null = null): ApiError {
  const shown = entry === null ? null : entry.slice(0, ENTRY_LENGTH_SHOWN_MAX).toWellFormed().replaceAll('\0', '\uFFFD')
  const subject = shown === null ? '' : `${JSON.stringify(shown)}: `
  return new ApiError('ARCHIVE_INVALID', { entry: shown, reason }, { message: `${subject}${SENTENCES[reason]}` })
}
