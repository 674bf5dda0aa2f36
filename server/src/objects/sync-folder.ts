import { open } from 'node:fs/promises'

/** What was created in or renamed into a folder is durable once this resolves. */
export async function syncFolder(path: string): Promise<void> {
  // Windows does not open folders, and needs no such thing.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
