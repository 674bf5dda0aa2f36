// The clients of a namespace that have solved a captcha, and how many requests they have made since. verify() and count()
// return how to undo them. An entry is removed when it admits no more requests.
import { createHeap } from './heap.ts'

/** Clients remembered, about 200 bytes each. Beyond it, the client whose entry expires first needs a new captcha. */
const CAPTCHA_CLIENTS_MAX = 500_000

export type CaptchaRules = { requests_before_reverify: number; verification_ttl_ms: number }

export type VerifiedClient = {
  client_key: string
  verify_ms: number
  /** From the rules at the time when the captcha was solved. */
  expire_ms: number
  request_count: number
}

export type CaptchaMemory = {
  /** Whether the client may make another request without a captcha. */
  allows: (client_key: string, rules: CaptchaRules, now_ms: number) => boolean
  get: (client_key: string) => VerifiedClient | undefined
  verify: (client_key: string, verify_ms: number, expire_ms: number) => () => void
  /** Does nothing for a client that is not remembered. */
  count: (client_key: string) => () => void
  load: (clients: readonly VerifiedClient[]) => void
  /** `durable_ms`: changes until then cannot be undone any more. */
  forget: (durable_ms: number) => void
  size: () => number
}

export function createCaptchaMemory(): CaptchaMemory {
  const clients = new Map<string, VerifiedClient>()
  const ends = createHeap<VerifiedClient>((a, b) => a.expire_ms < b.expire_ms)

  function put(entry: VerifiedClient): void {
    remove(entry.client_key)
    clients.set(entry.client_key, entry)
    ends.put(entry)
  }

  function remove(client_key: string): void {
    const entry = clients.get(client_key)
    if (entry === undefined) return
    clients.delete(client_key)
    ends.remove(entry)
  }

  return {
    allows(client_key, rules, now_ms) {
      const entry = clients.get(client_key)
      if (entry === undefined) return false
      return (
        now_ms - entry.verify_ms < rules.verification_ttl_ms && entry.request_count < rules.requests_before_reverify
      )
    },
    get: (client_key) => clients.get(client_key),
    verify(client_key, verify_ms, expire_ms) {
      const before = clients.get(client_key)
      put({ client_key, verify_ms, expire_ms, request_count: 0 })
      return () => (before === undefined ? remove(client_key) : put(before))
    },
    count(client_key) {
      const entry = clients.get(client_key)
      if (entry === undefined) return () => {}
      entry.request_count++
      return () => {
        entry.request_count--
      }
    },
    load(loaded) {
      for (const entry of loaded) put(entry)
    },
    forget(durable_ms) {
      for (let first = ends.peek(); first !== undefined; first = ends.peek()) {
        if (first.expire_ms > durable_ms && clients.size <= CAPTCHA_CLIENTS_MAX) return
        remove(first.client_key)
      }
    },
    size: () => clients.size,
  }
}
