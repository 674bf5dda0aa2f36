// The page that a provider leads back to. It hands the parameters of the address to the platform, once, and removes them from the
// address: the code in it is of use to no other page.
import { Link, useParams, useRouter } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { callAnonymously } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { completeProviderSignIn } from '../../api/operations.gen.ts'
import { HOME, SIGN_IN } from '../../links.ts'
import { Failure, Loading } from '../../parts/notice.tsx'
import { RETURNED } from './returned.ts'
import { openSession } from './use-step.ts'

const PARAMETERS = ['state', 'code', 'iss', 'error', 'error_description'] as const

export default function ProviderReturn() {
  const { provider } = useParams({ strict: false }) as { provider?: string }
  const { history } = useRouter()
  const [error, setError] = useState<CallError | null>(null)
  const is_sent = useRef(false)
  useEffect(() => {
    document.title = 'Sign in · Muster'
    // The parameters are good once, and React may run an effect twice.
    if (is_sent.current) return
    is_sent.current = true
    const found = PARAMETERS.flatMap((name): [string, string][] => {
      const value = RETURNED.get(name)
      return value === null ? [] : [[name, value]]
    })
    window.history.replaceState(window.history.state, '', location.pathname)
    complete(provider ?? '', Object.fromEntries(found)).then(
      (to) => history.replace(to),
      (failure: unknown) =>
        setError(failure instanceof CallError ? failure : new CallError('INTERNAL_ERROR', String(failure))),
    )
  }, [provider, history])
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-6 px-4 py-8">
      <header className="flex flex-col items-center gap-3 text-center">
        <img src="/hub-icon.svg" alt="" className="size-12" />
        <h1>Sign in to Muster</h1>
      </header>
      {error === null ? (
        <Loading what="Signing you in" />
      ) : (
        <>
          <Failure error={error} />
          <p className="text-center">
            <Link to={SIGN_IN}>Back to the sign-in</Link>
          </p>
        </>
      )}
    </main>
  )
}

/** Returns the path of the hub to show. */
async function complete(name: string, body: Record<string, string>): Promise<string> {
  const { to } = await callAnonymously(completeProviderSignIn, { params: { provider_name: name }, body })
  await openSession()
  return /^\/(?![/\\])/.test(to) && !to.startsWith(SIGN_IN) ? to : HOME
}
