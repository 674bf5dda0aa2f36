// Sign-in: with a passkey, with a provider, by a code from an e-mail, by a link that works once, or by the operator's access token.
import { useLocation, useRouter } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useEffect, useState } from 'react'
import { callAnonymously } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import {
  completeAccessTokenVerification,
  completeEmailVerification,
  completeLinkVerification,
  getBootstrap,
  startEmailVerification,
} from '../../api/operations.gen.ts'
import { afterSignIn, HOME } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Failure, Loading } from '../../parts/notice.tsx'
import { useSession } from '../../shell/person.tsx'
import { SignInFrame } from './frame.tsx'
import { PasskeyButton } from './passkey-button.tsx'
import { ProviderButtons } from './provider-buttons.tsx'
import { Turnstile } from './turnstile.tsx'
import { openSession, useStep } from './use-step.ts'

type Bootstrap = Awaited<ReturnType<typeof callAnonymously<NonNullable<(typeof getBootstrap)['of']>>>>

export default function SignIn() {
  const [bootstrap, setBootstrap] = useState<Bootstrap | null>(null)
  const [error, setError] = useState<CallError | null>(null)
  useLeaveWhenSignedIn()
  useEffect(() => {
    document.title = 'Sign in · Muster'
    callAnonymously(getBootstrap, {}).then(setBootstrap, setError)
  }, [])

  return (
    <SignInFrame>
      <LinkForm />
      {error === null ? null : <Failure error={error} />}
      {bootstrap === null ? (
        error === null ? (
          <Loading />
        ) : null
      ) : (
        <>
          <PasskeyButton />
          <ProviderButtons />
          {bootstrap.login_methods.email ? (
            <EmailForm site_key={bootstrap.captcha.turnstile?.site_key ?? null} />
          ) : null}
          <TokenForm is_folded={bootstrap.login_methods.email} />
        </>
      )}
      <p className="text-center text-xs text-soft">
        <a href="/docs/api">API reference</a>
      </p>
    </SignInFrame>
  )
}

/** After the sign-in the person continues at the page that asked for it. */
function useLeaveWhenSignedIn(): void {
  const session = useSession()
  const { history } = useRouter()
  const { search } = useLocation()
  // The address changes before this page is gone.
  const [to] = useState((search as { to?: unknown }).to)
  useEffect(() => {
    if (session.state !== 'signed_in') return
    history.replace(afterSignIn(to) ?? HOME)
  }, [session.state, to, history])
}

function Form({ onSubmit, children }: { onSubmit: () => void; children: ReactNode }) {
  function send(event: FormEvent): void {
    event.preventDefault()
    onSubmit()
  }
  return (
    <form onSubmit={send} className="flex flex-col gap-3 rounded-lg border border-line bg-raised p-4">
      {children}
    </form>
  )
}

/**
 * The link of the first start. A click spends it, not the visit: programs that open addresses of chats and logs would
 * otherwise use it up.
 */
function LinkForm() {
  const { search } = useLocation()
  const [link] = useState((search as { link?: unknown }).link)
  const { is_busy, error, run } = useStep()
  if (link === undefined) return null
  const send = (): void =>
    run(async () => {
      await callAnonymously(completeLinkVerification, { body: { link: String(link) } })
      await openSession()
    })
  return (
    <Form onSubmit={send}>
      <p>Your link signs you in as an administrator. It works once.</p>
      {error === null ? null : <Failure error={error} />}
      <Button type="submit" kind="primary" is_busy={is_busy} autoFocus>
        Sign in with the link
      </Button>
    </Form>
  )
}

function EmailForm({ site_key }: { site_key: string | null }) {
  const [email, setEmail] = useState('')
  const [captcha, setCaptcha] = useState<string | null>(null)
  const [verification_id, setVerification] = useState<string | null>(null)
  const { is_busy, error, run } = useStep()
  if (verification_id !== null) {
    return <CodeForm email={email} verification_id={verification_id} onOther={() => setVerification(null)} />
  }
  const send = (): void =>
    run(async () => {
      const proof = captcha === null ? {} : { captcha: { turnstile: { client_response: captcha } } }
      const started = await callAnonymously(startEmailVerification, { body: { email, ...proof } })
      setVerification(started.verification_id)
    })
  return (
    <Form onSubmit={send}>
      <TextField label="E-mail address" type="email" required autoComplete="email" value={email} onChange={setEmail} />
      {site_key === null ? null : <Turnstile site_key={site_key} onResponse={setCaptcha} />}
      {error === null ? null : <Failure error={error} />}
      <Button type="submit" kind="primary" is_busy={is_busy} disabled={site_key !== null && captcha === null}>
        Send me a code
      </Button>
    </Form>
  )
}

const OUTCOMES: Record<string, string> = {
  already_complete: 'This code was used before. Ask for another one.',
  expired: 'This code has expired. Ask for another one.',
  too_many_attempts: 'Four attempts failed. Ask for another code.',
  incorrect: 'This is not the code. Compare it with the mail and try again.',
}

function CodeForm({
  email,
  verification_id,
  onOther,
}: {
  email: string
  verification_id: string
  onOther: () => void
}) {
  const [code, setCode] = useState('')
  const { is_busy, error, run } = useStep()
  const send = (): void =>
    run(async () => {
      const body = { verification_id, code: code.trim().toUpperCase() }
      const { status } = await callAnonymously(completeEmailVerification, { body })
      const refusal = OUTCOMES[status]
      if (refusal !== undefined) throw new CallError(status.toUpperCase(), refusal)
      await openSession()
    })
  return (
    <Form onSubmit={send}>
      <p>
        A code is on its way to <strong className="wrap-anywhere">{email}</strong>. It is valid for 15 minutes.
      </p>
      <TextField
        label="Code from the e-mail"
        required
        autoFocus
        autoComplete="one-time-code"
        autoCapitalize="characters"
        spellCheck={false}
        value={code}
        onChange={setCode}
      />
      {error === null ? null : <Failure error={error} />}
      <Button type="submit" kind="primary" is_busy={is_busy}>
        Sign in
      </Button>
      <Button kind="quiet" onClick={onOther}>
        Use another address
      </Button>
    </Form>
  )
}

function TokenForm({ is_folded }: { is_folded: boolean }) {
  const [is_open, setOpen] = useState(!is_folded)
  const [access_token, setToken] = useState('')
  const { is_busy, error, run } = useStep()
  if (!is_open) {
    return (
      <Button kind="quiet" onClick={() => setOpen(true)}>
        Sign in with the operator's access token
      </Button>
    )
  }
  const send = (): void =>
    run(async () => {
      await callAnonymously(completeAccessTokenVerification, { body: { access_token: access_token.trim() } })
      await openSession()
    })
  return (
    <Form onSubmit={send}>
      <TextField
        label="Access token"
        type="password"
        required
        autoFocus={is_folded}
        autoComplete="off"
        hint={
          <>
            On the machine of the platform it is in the file <code>admin-token</code> of the data folder.
          </>
        }
        value={access_token}
        onChange={setToken}
      />
      {error === null ? null : <Failure error={error} />}
      <Button type="submit" kind="primary" is_busy={is_busy}>
        Sign in
      </Button>
    </Form>
  )
}
