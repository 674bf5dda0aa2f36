// Buttons, and links that look like them.
import { createLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ReactNode, Ref } from 'react'

/** `danger`, `quiet_danger`: what the button takes away is lost. */
export type ButtonKind = 'primary' | 'plain' | 'danger' | 'quiet' | 'quiet_danger'

const BASE =
  'inline-flex max-w-full items-center justify-center gap-1.5 rounded-md border py-1.5 text-sm font-medium no-underline whitespace-nowrap cursor-pointer disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55 max-sm:min-h-10'
const KINDS: Record<ButtonKind, string> = {
  primary: 'px-3 border-accent bg-accent text-on-accent enabled:hover:opacity-90',
  plain: 'px-3 border-line bg-raised text-ink enabled:hover:bg-code hover:bg-code',
  danger: 'px-3 border-bad bg-page text-bad enabled:hover:bg-bad-page',
  quiet: 'px-1.5 border-transparent bg-transparent text-accent enabled:hover:bg-mark hover:bg-mark',
  quiet_danger: 'px-1.5 border-transparent bg-transparent text-bad enabled:hover:bg-bad-page',
}

export function buttonClass(kind: ButtonKind): string {
  return `${BASE} ${KINDS[kind]}`
}

export type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'className'> & {
  kind?: ButtonKind
  /** The action runs: the button cannot be pressed again. */
  is_busy?: boolean
  children: ReactNode
  ref?: Ref<HTMLButtonElement>
}

export function Button({ kind = 'plain', is_busy = false, onClick, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      // A busy button is not `disabled`: it would lose the focus, and Escape would no longer close its dialog.
      aria-disabled={is_busy || undefined}
      onClick={is_busy ? (event) => event.preventDefault() : onClick}
      className={buttonClass(kind)}
    >
      {/* Names of versions are up to 128 characters long. */}
      <span className="min-w-0 truncate">{children}</span>
      {is_busy ? <span aria-hidden="true">…</span> : null}
    </button>
  )
}

type AnchorProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'className'> & {
  kind?: ButtonKind
  ref?: Ref<HTMLAnchorElement>
}

/** A link to a page of the hub that looks like a button. */
export const LinkButton = createLink(({ kind = 'plain', ...rest }: AnchorProps) => (
  <a {...rest} className={buttonClass(kind)} />
))
