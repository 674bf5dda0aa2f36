// Files that a person drops on the page or chooses: with their paths below the folder that was chosen.

export type LocalFile = { path: string; file: File }

/** The most files of one upload; the platform has the same limit. */
const FILES_MAX = 10_000
/** Folders of folders. */
const DEPTH_MAX = 32
/** What tools leave in folders, and what belongs to nobody's site. */
const LEFT_OUT = /(^|\/)(\.git|\.DS_Store|Thumbs\.db|node_modules)(\/|$)/

/** Throws an Error with a sentence for people when there are too many files. */
export async function filesOfDrop(transfer: DataTransfer): Promise<LocalFile[]> {
  // The entries are only readable during the event, so all are taken before the first wait.
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? [])
  const found: LocalFile[] = []
  for (const entry of entries) await collect(entry, '', found, 0)
  return tidy(found)
}

export function filesOfInput(list: FileList): LocalFile[] {
  return tidy([...list].map((file) => ({ path: file.webkitRelativePath || file.name, file })))
}

async function collect(entry: FileSystemEntry, folder: string, found: LocalFile[], depth: number): Promise<void> {
  const path = folder === '' ? entry.name : `${folder}/${entry.name}`
  if (depth > DEPTH_MAX) throw new Error(`${path} lies too deep: at most ${DEPTH_MAX} folders.`)
  if (LEFT_OUT.test(path)) return
  if (entry.isFile) {
    if (found.length >= FILES_MAX) throw new Error(`The folder has more than ${FILES_MAX} files.`)
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    found.push({ path, file })
    return
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  // Each read returns a part of the folder; the last one is empty. Every part adds files, so FILES_MAX ends the loop.
  for (;;) {
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (part.length === 0) return
    for (const inner of part) await collect(inner, path, found, depth + 1)
  }
}

/** Without what tools leave behind, and without the name of the one folder that holds everything. */
function tidy(files: readonly LocalFile[]): LocalFile[] {
  const kept = files.filter(({ path }) => !LEFT_OUT.test(path))
  const [first] = kept
  const top = first?.path.includes('/') === true ? `${first.path.split('/', 1)[0]}/` : ''
  const is_one_folder = top !== '' && kept.every(({ path }) => path.startsWith(top))
  return kept.map(({ path, file }) => ({
    path: (is_one_folder ? path.slice(top.length) : path).normalize('NFC'),
    file,
  }))
}
