// The page that a provider leads back to. It hands the parameters of the address to the platform, once, and removes them from the
// address: the code in it is of use to no other page.
import { Link, useParams, useRouter } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { callAnonymously } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { completeProviderSignIn } from '../../api/operations.gen.ts'
import { afterSignIn, HOME, SIGN_IN } from '../../links.ts'
import { Failure, Loading } from '../../parts/notice.tsx'
import { SignInFrame } from './frame.tsx'
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
      (failure: unknown) => setError(CallError.of(failure)),
    )
  }, [provider, history])
  return (
    <SignInFrame>
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
    </SignInFrame>
  )
}

/** Returns the path of the hub to show. */
async function complete(name: string, body: Record<string, string>): Promise<string> {
  const { to } = await callAnonymously(completeProviderSignIn, { params: { provider_name: name }, body })
  await openSession()
  return afterSignIn(to) ?? HOME
}
