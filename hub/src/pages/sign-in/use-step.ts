// What the ways to sign in share.
import { useState } from 'react'
import { CallError } from '../../api/call-error.ts'
import { query_client } from '../../api/queries.ts'
import { userToken } from '../../api/session.ts'

/** Runs a step of the sign-in, and keeps its error for the form. */
export function useStep(): { is_busy: boolean; error: CallError | null; run: (step: () => Promise<void>) => void } {
  const [is_busy, setBusy] = useState(false)
  const [error, setError] = useState<CallError | null>(null)
  function run(step: () => Promise<void>): void {
    setBusy(true)
    setError(null)
    step()
      .catch((failure: unknown) => setError(CallError.of(failure)))
      .finally(() => setBusy(false))
  }
  return { is_busy, error, run }
}

/** The cookie is set. The first user token opens the session of this page. */
export async function openSession(): Promise<void> {
  query_client.clear()
  await userToken()
}
