// What the browser keeps for this page. In a frame of another site browsers may block that: all access throws, and nothing is kept.

type Kept = Pick<Storage, 'getItem' | 'setItem'>

function whereAllowed(open: () => Storage): Kept {
  const attempt = <T>(access: (storage: Storage) => T): T | null => {
    try {
      return access(open())
    } catch (error) {
      if (error instanceof DOMException) return null
      throw error
    }
  }
  return {
    getItem: (key) => attempt((storage) => storage.getItem(key)),
    setItem: (key, value) => void attempt((storage) => storage.setItem(key, value)),
  }
}

/** Until the player clears it. */
export const device = whereAllowed(() => localStorage)
/** Until the tab is closed. */
export const tab = whereAllowed(() => sessionStorage)
