// Changes that a person confirms with a passkey. The platform says which; the page asks for the passkey and repeats the call.
import { CallError } from './call-error.ts'

/** Runs the call, and once more after a confirmation when the platform asks for one. */
export async function confirmed<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof CallError) || error.code !== 'CONFIRMATION_REQUIRED') throw error
    const { confirmByPasskey, hasPasskeys } = await import('./passkeys.ts')
    if (!hasPasskeys()) throw withoutPasskeys()
    await confirmByPasskey()
    return run()
  }
}

function withoutPasskeys(): CallError {
  const message =
    'This must be confirmed with your passkey, and this browser has none. Do it in a browser with passkeys, at the address of the hub.'
  return new CallError('CONFIRMATION_REQUIRED', message)
}
