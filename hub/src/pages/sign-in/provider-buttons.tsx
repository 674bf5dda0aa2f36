// A button for each provider with which people sign in. None: nothing is shown.
import { useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { callAnonymously } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { listOpenSignInProviders, startProviderSignIn } from '../../api/operations.gen.ts'
import { afterSignIn } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { Failure } from '../../parts/notice.tsx'
import { useStep } from './use-step.ts'

/** Characters of a path that the platform keeps during the sign-in. */
const PATH_LENGTH_MAX = 512

type Provider = { name: string; title: string }

export function ProviderButtons() {
  const [providers, setProviders] = useState<readonly Provider[]>([])
  const [started, setStarted] = useState<string | null>(null)
  const { search } = useLocation()
  const [to] = useState((search as { to?: unknown }).to)
  const { is_busy, error, run } = useStep()
  useEffect(() => {
    // The other ways to sign in stay when the list cannot be read.
    callAnonymously(listOpenSignInProviders, {}).then(
      (read) => setProviders(read.providers),
      () => undefined,
    )
  }, [])
  if (providers.length === 0) return null
  const start = (name: string): void => {
    setStarted(name)
    run(async () => {
      const path = afterSignIn(to)
      const body = path !== null && path.length <= PATH_LENGTH_MAX ? { to: path } : {}
      const { url } = await callAnonymously(startProviderSignIn, { params: { provider_name: name }, body })
      if (!/^https?:/.test(url)) throw new CallError('SIGN_IN_FAILED', 'The provider has no address of the web.')
      location.assign(url)
    })
  }
  return (
    <div className="flex flex-col gap-2">
      {providers.map(({ name, title }) => (
        <Button key={name} kind="primary" is_busy={is_busy && started === name} onClick={() => start(name)}>
          Sign in with {title}
        </Button>
      ))}
      {error === null ? null : <Failure error={error} />}
    </div>
  )
}
