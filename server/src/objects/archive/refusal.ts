// The reasons of ARCHIVE_INVALID, each with a sentence for the developer, and its remedy.
import { ApiError } from '@musterhost/contract'

const SENTENCES = {
  // The archive as a whole.
  not_an_archive: 'It is not a tar, tar.gz or zip archive. Pack it as one of these.',
  empty: 'It contains no file. Pack the files of the server.',
  truncated: 'It ends too early. Pack it again, and upload it whole.',
  trailing_data: 'Data follows after its end. Pack everything at once.',
  corrupt: 'Its structure is damaged. Pack it again, and upload it again.',
  checksum: 'The bytes do not have the checksum that the archive names. Pack it again, and upload it again.',
  extended_header:
    'Its extended header is longer than the platform accepts. Pack it without extended attributes (`tar --no-xattrs --no-acls`), and shorten long paths.',
  too_many_entries:
    'It contains more files and folders than the platform accepts. Leave out what the server does not need.',
  too_many_bytes: 'It unpacks to more bytes than the platform accepts. Leave out what the server does not need.',
  ratio:
    'It is compressed more than any build is. Leave out long files of equal bytes, or pack it without compression.',

  // The type of an entry.
  link: 'It is a link; only files and folders are unpacked. Pack copies with `tar --dereference --hard-dereference`.',
  device: 'It is a device; only files and folders are unpacked. Leave it out.',
  fifo: 'It is a pipe; only files and folders are unpacked. Leave it out.',
  socket: 'It is a socket; only files and folders are unpacked. Leave it out.',
  sparse: 'It is a sparse file; pack it as a plain one, without `tar --sparse`.',
  unknown_type: 'It is neither a file nor a folder. Leave it out.',
  encrypted: 'It is encrypted. Pack it without a password.',
  compression_method:
    'It is compressed by a method other than deflate. Choose deflate, which most tools use unless told otherwise.',
  size_mismatch: 'Its length differs from the length in the archive. Pack it again.',
  overlap: 'It shares its bytes with another entry. Pack it again.',

  // The name of an entry.
  empty_name: 'A name between two slashes is empty. Pack it again with another tool.',
  encoding: 'The name is not UTF-8. Rename it, or pack it with a tool that writes UTF-8.',
  absolute: 'The path is absolute. Pack it from within its folder: `tar -C FOLDER -czf build.tar.gz .`',
  dots: 'A name is "." or "..". Pack it from within its folder: `tar -C FOLDER -czf build.tar.gz .`',
  backslash:
    'The name has a backslash; folders are separated by a slash. Pack it with tar, 7-Zip or a newer PowerShell.',
  colon: 'The name has a colon. Rename it.',
  control_character: 'The name has a control character, or one that is not visible. Rename it.',
  percent_encoded: 'The name has a dot, a slash or a NUL in percent encoding. Rename it.',
  trailing_dot_or_space: 'A name ends in a dot or a space, or begins with a space. Rename it.',
  reserved_name: 'A name is reserved by Windows. Rename it.',
  path_too_long: 'The path is too long. Shorten it.',
  path_too_deep: 'The path has too many folders. Put the file into fewer folders.',
  duplicate: 'There is another entry of this path. Pack each file once.',
  twin: 'The path differs from another one only in upper and lower case or in how accents are written. Rename one of them.',
  not_a_folder: 'A folder of this path is a file in another entry. Rename one of them.',
} as const

export type ArchiveFault = keyof typeof SENTENCES

/** Characters of an entry's name in a message. */
const ENTRY_LENGTH_SHOWN_MAX = 200

/**
 * ApiError ARCHIVE_INVALID with `metadata: { entry, reason }`; `entry` is null when the archive itself is at fault. `sentence`:
 * more exact than that of the reason.
 */
export function archiveRefused(
  reason: ArchiveFault,
  entry: string | null = null,
  sentence: string = SENTENCES[reason],
): ApiError {
  const shown = entry === null ? null : shownName(entry)
  const subject = shown === null ? '' : `${JSON.stringify(shown)}: `
  return new ApiError('ARCHIVE_INVALID', { entry: shown, reason }, { message: `${subject}${sentence}` })
}

/** Adds the entry that was read to an error that names none: the fault is in the entry or after it. */
export function nearEntry(error: unknown, entry: string | null): unknown {
  if (entry === null || !(error instanceof ApiError) || error.code !== 'ARCHIVE_INVALID') return error
  if (error.metadata.entry !== null) return error
  const shown = shownName(entry)
  const message = `At ${JSON.stringify(shown)}: ${error.message}`
  return new ApiError('ARCHIVE_INVALID', { ...error.metadata, entry: shown }, { message })
}

function shownName(entry: string): string {
  return entry.slice(0, ENTRY_LENGTH_SHOWN_MAX).toWellFormed().replaceAll('\0', '\uFFFD')
}
