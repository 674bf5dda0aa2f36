// Sign-in with a passkey alone. Without passkeys in this browser, nothing is shown.
import { hasPasskeys, signInByPasskey } from '../../api/passkeys.ts'
import { Button } from '../../parts/button.tsx'
import { Failure } from '../../parts/notice.tsx'
import { openSession, useStep } from './use-step.ts'

export function PasskeyButton() {
  const { is_busy, error, run } = useStep()
  if (!hasPasskeys()) return null
  const start = (): void =>
    run(async () => {
      await signInByPasskey()
      await openSession()
    })
  return (
    <div className="flex flex-col gap-2">
      <Button is_busy={is_busy} onClick={start}>
        Sign in with a passkey
      </Button>
      {error === null ? null : <Failure error={error} />}
    </div>
  )
}
