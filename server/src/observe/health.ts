// Whether this process is well. Alive: it answers. Ready: it has started, is not about to stop, and what it needs is
// there; then it may be sent requests. A check is asked now and then at most, however often it is read.

/** How old an answer may be. */
const FRESH_MS = 1_000
/** One check of readiness. */
const CHECK_MS_MAX = 2_000
const SLOW: unique symbol = Symbol('slow')

type Answers = { held: [string, boolean][]; warnings: string[] }

type HealthCheck = () => boolean | Promise<boolean>
/** A sentence for the operator; null: all is well. */
export type Warning = () => string | null | Promise<string | null>
/** `warnings` do not affect readiness: the operator should act on them. */
export type Readiness = { is_ready: boolean; checks: Record<string, boolean>; warnings: string[] }

export type Health = {
  /** What must hold for the process to be ready. Ends with the function that it answers. */
  needs: (name: string, check: HealthCheck) => () => void
  /** A problem for the operator that does not make the process unready. A later one of the same name replaces it. */
  warns: (name: string, warning: Warning) => void
  /** All roles serve. */
  started: () => void
  /** From now on it is not ready, whatever else holds. */
  stopping: () => void
  readiness: () => Promise<Readiness>
}

export function createHealth(): Health {
  const checks = new Map<string, HealthCheck>()
  const warnings = new Map<string, Warning>()
  let is_serving = false
  let asked: { at: number; answers: Promise<Answers> } | null = null

  function ask(): Promise<Answers> {
    if (asked === null || performance.now() - asked.at >= FRESH_MS) {
      asked = { at: performance.now(), answers: askAll() }
    }
    return asked.answers
  }

  async function askAll(): Promise<Answers> {
    const [held, said] = await Promise.all([
      Promise.all([...checks].map(async ([name, check]): Promise<[string, boolean]> => [name, await holds(check)])),
      Promise.all([...warnings.values()].map(sentenceOf)),
    ])
    return { held, warnings: said.filter((sentence) => sentence !== null) }
  }

  return {
    needs(name, check) {
      checks.set(name, check)
      asked = null
      return () => void checks.delete(name)
    },
    warns(name, warning) {
      warnings.set(name, warning)
      asked = null
    },
    started() {
      is_serving = true
    },
    stopping() {
      is_serving = false
    },
    async readiness() {
      const answers = await ask()
      const checks = Object.fromEntries([['serving', is_serving], ...answers.held])
      return { is_ready: Object.values(checks).every(Boolean), checks, warnings: answers.warnings }
    },
  }
}

async function holds(check: HealthCheck): Promise<boolean> {
  try {
    return (await inTime(check)) === true
  } catch {
    // The reason is logged by the part that needs the check.
    return false
  }
}

/** A warning that cannot be found out says nothing: what keeps it from that is a check of its own. */
async function sentenceOf(warning: Warning): Promise<string | null> {
  try {
    const sentence = await inTime(warning)
    return sentence === SLOW ? null : sentence
  } catch {
    return null
  }
}

async function inTime<T>(ask: () => T | Promise<T>): Promise<T | typeof SLOW> {
  const late = Promise.withResolvers<typeof SLOW>()
  const timer = setTimeout(() => late.resolve(SLOW), CHECK_MS_MAX)
  try {
    return await Promise.race([ask(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
