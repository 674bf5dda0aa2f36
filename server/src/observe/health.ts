// Whether this process is well. Alive: it answers. Ready: it has started, is not about to stop, and what it needs is
// there; then it may be sent requests. A check is asked now and then at most, however often somebody looks.

/** How old an answer may be. */
const FRESH_MS = 1_000
const CHECK_MS_MAX = 2_000
const SLOW = Symbol('slow')

export type Check = () => boolean | Promise<boolean>
export type Readiness = { is_ready: boolean; checks: Record<string, boolean> }

export type Health = {
  /** What must hold for the process to be ready. Ends with the function that it answers. */
  needs: (name: string, check: Check) => () => void
  /** All roles serve. */
  started: () => void
  /** From now on it is not ready, whatever else holds. */
  stopping: () => void
  readiness: () => Promise<Readiness>
}

export function createHealth(): Health {
  const checks = new Map<string, Check>()
  let is_serving = false
  let asked: { at: number; answers: Promise<[string, boolean][]> } | null = null

  function ask(): Promise<[string, boolean][]> {
    if (asked === null || performance.now() - asked.at >= FRESH_MS) {
      const answers = [...checks].map(async ([name, check]): Promise<[string, boolean]> => [name, await holds(check)])
      asked = { at: performance.now(), answers: Promise.all(answers) }
    }
    return asked.answers
  }

  return {
    needs(name, check) {
      checks.set(name, check)
      asked = null
      return () => void checks.delete(name)
    },
    started() {
      is_serving = true
    },
    stopping() {
      is_serving = false
    },
    async readiness() {
      const answers = await ask()
      const told = Object.fromEntries([['serving', is_serving], ...answers])
      return { is_ready: Object.values(told).every(Boolean), checks: told }
    },
  }
}

async function holds(check: Check): Promise<boolean> {
  const late = Promise.withResolvers<typeof SLOW>()
  const timer = setTimeout(() => late.resolve(SLOW), CHECK_MS_MAX)
  try {
    return (await Promise.race([check(), late.promise])) === true
  } catch {
    // Why not is in the log of whoever needs it.
    return false
  } finally {
    clearTimeout(timer)
  }
}
