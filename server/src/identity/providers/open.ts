// Sign-ins with providers in the api role. Until the first one, neither the libraries nor this platform's code of it are loaded.
import type { Context } from '../../context.ts'
import type { SignInWork } from './work.ts'

export type LoadSignInWork = () => Promise<SignInWork>

export function openSignInWork(ctx: Context): LoadSignInWork {
  let work: Promise<SignInWork> | null = null
  return () => {
    work ??= import('./work.ts').then(({ createSignInWork }) => createSignInWork(ctx))
    return work
  }
}
