// Clients of the plain book that have solved a captcha.
import { type Outcome, type PlainBook, refused } from './state.ts'

export type PlainRules = { requests: number; ttl: number }

export function admit(book: PlainBook, client: string, rules: PlainRules, solved: boolean, now: number): Outcome {
  if (solved) {
    book.solvers = book.solvers.filter((other) => other.client !== client)
    book.solvers.push({ client, solved: now, until: now + rules.ttl, requests: 0 })
    return null
  }
  const solver = book.solvers.find((other) => other.client === client)
  if (solver === undefined || now >= solver.solved + rules.ttl || solver.requests >= rules.requests) {
    return refused('CAPTCHA_CAPTCHA_REQUIRED')
  }
  solver.requests++
  return null
}
