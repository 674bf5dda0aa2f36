import { open } from 'node:fs/promises'

/** When it resolves, files created in or renamed into the folder are durable. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open folders, and does not need this.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
