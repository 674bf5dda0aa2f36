// The frame of the pages on which people sign in.
import type { ReactNode } from 'react'

export function SignInFrame({ children }: { children: ReactNode }) {
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-6 px-4 py-8">
      <header className="flex flex-col items-center gap-3 text-center">
        <img src="/hub-icon.svg" alt="" className="size-12" />
        <h1>Sign in to Muster</h1>
      </header>
      {children}
    </main>
  )
}
