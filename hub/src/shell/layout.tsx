// The frame of every page: the bar at the top, the page, and messages.
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { signOut, userToken } from '../api/session.ts'
import { ACCOUNT, HOME, PLATFORM, SIGN_IN } from '../links.ts'
import { Button } from '../parts/button.tsx'
import { CONTENT_ID, useKeptFocus } from '../parts/focus.ts'
import { Failure, Loading } from '../parts/notice.tsx'
import { closeToast, showToast, useToasts } from '../toasts.ts'
import { PersonProvider, usePerson, useProfile, useSession } from './person.tsx'
import { isTyping, Shortcuts } from './shortcuts.tsx'
import { nextTheme, useTheme } from './theme.ts'

const Palette = lazy(() => import('./palette.tsx'))

/** The root of all pages. */
export function Root() {
  return (
    <>
      <Outlet />
      <Toasts />
    </>
  )
}

/** The frame of the pages for people who are signed in. Others are led to the sign-in, and back here afterwards. */
export function Layout() {
  const session = useSession()
  const { href, pathname } = useLocation()
  const navigate = useNavigate()
  useEffect(() => {
    if (session.state === 'unknown') void userToken().catch(() => undefined)
    // The address is already that of the sign-in before this frame is gone.
    if (session.state !== 'signed_out' || pathname === SIGN_IN) return
    void navigate({ to: SIGN_IN, search: { to: href } as never, replace: true })
  }, [session.state, href, pathname, navigate])
  return session.state === 'signed_in' ? <SignedIn /> : <Starting />
}

const STARTING_MS_MAX = 8_000

function Starting() {
  const [is_late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), STARTING_MS_MAX)
    return () => clearTimeout(timer)
  }, [])
  if (!is_late) return <Loading what="Checking your session" />
  return (
    <main className="p-6">
      <p>The platform cannot be reached.</p>
      <Button onClick={() => location.reload()}>Try again</Button>
    </main>
  )
}

function SignedIn() {
  const profile = useProfile()
  if (profile.data === undefined) {
    return profile.error === null ? (
      <Loading what="Loading your profile" />
    ) : (
      <Failure error={profile.error} onRepeat={() => void profile.refetch()} />
    )
  }
  const { identity_id, display_name, is_admin } = profile.data.identity
  return (
    <PersonProvider person={{ identity_id, display_name, is_admin }}>
      <a
        href={`#${CONTENT_ID}`}
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:bg-page focus:p-2"
      >
        Skip to the content
      </a>
      <Bar />
      <Content />
    </PersonProvider>
  )
}

function Content() {
  useKeptFocus()
  return (
    <main id={CONTENT_ID} tabIndex={-1} className="-outline-offset-2">
      <Outlet />
    </main>
  )
}

function Bar() {
  const { display_name, is_admin } = usePerson()
  return (
    <header className="sticky top-0 z-30 border-b border-line bg-raised">
      <div className="mx-auto flex max-w-7xl items-center gap-x-4 gap-y-1 px-4 py-2 sm:px-6">
        <Link to={HOME} className="flex items-center gap-2 font-semibold text-ink no-underline">
          <img src="/hub-icon.svg" alt="" className="size-6" />
          Muster
        </Link>
        <PaletteButton />
        <nav aria-label="Main" className="ml-auto flex items-center gap-1 sm:gap-3">
          {is_admin ? <BarLink to={PLATFORM}>Platform</BarLink> : null}
          <a href="/docs" className="px-1 text-ink no-underline hover:underline max-sm:hidden">
            Docs
          </a>
          <a href="/docs/api" className="px-1 text-ink no-underline hover:underline max-sm:hidden">
            API
          </a>
          <BarLink to={ACCOUNT}>
            <span className="inline-block max-w-28 truncate align-bottom">{display_name}</span>
          </BarLink>
          <ThemeButton />
          <span className="max-sm:hidden">
            <SignOutButton />
          </span>
        </nav>
      </div>
    </header>
  )
}

function BarLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link
      to={to}
      className="px-1 text-ink no-underline hover:underline max-sm:py-2"
      activeProps={{ className: 'font-semibold', 'aria-current': 'page' }}
    >
      {children}
    </Link>
  )
}

function ThemeButton() {
  const theme = useTheme()
  const signs = { system: '◐', light: '☀', dark: '☾' }
  return (
    <Button kind="quiet" onClick={nextTheme} title={`Theme: ${theme}`} aria-label={`Theme: ${theme}. Change it.`}>
      <span aria-hidden="true">{signs[theme]}</span>
    </Button>
  )
}

export function SignOutButton() {
  return (
    <Button kind="quiet" onClick={() => void signOut().catch((error: Error) => showToast('bad', error.message))}>
      Sign out
    </Button>
  )
}

function PaletteButton() {
  const [is_open, setOpen] = useState(false)
  const [has_shortcuts, setShortcuts] = useState(false)
  useEffect(() => {
    function onKey(event: KeyboardEvent): void {
      if (event.key === '?' && !isTyping(event.target) && document.querySelector('[role=dialog]') === null) {
        event.preventDefault()
        setShortcuts(true)
      }
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return
      event.preventDefault()
      setOpen(true)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button
        type="button"
        onClick={() => setOpen(true)}
        className="flex min-w-0 flex-1 cursor-pointer items-center justify-between gap-3 rounded-md border border-line bg-page px-2.5 py-1 text-left text-soft hover:border-soft max-sm:min-h-10 sm:max-w-72"
      >
        <span className="truncate">Go to …</span>
        <kbd className="text-xs whitespace-nowrap max-sm:hidden">Ctrl K</kbd>
      </button>
      {is_open ? (
        <Suspense>
          <Palette onClose={() => setOpen(false)} onShortcuts={() => setShortcuts(true)} />
        </Suspense>
      ) : null}
      {has_shortcuts ? <Shortcuts onClose={() => setShortcuts(false)} /> : null}
    </>
  )
}

function Toasts() {
  const toasts = useToasts()
  return (
    <section
      aria-label="Messages"
      aria-live="polite"
      className="fixed right-3 bottom-3 z-50 flex w-80 max-w-[90vw] flex-col gap-2"
    >
      {toasts.map(({ toast_id, kind, text, ray_id }) => (
        <div
          key={toast_id}
          className={`flex items-start justify-between gap-3 rounded-lg border-l-4 p-3 shadow-lg ${kind === 'good' ? 'border-good bg-good-page' : 'border-bad bg-bad-page'}`}
        >
          <div className="min-w-0 wrap-anywhere">
            <p>{text}</p>
            {ray_id === null ? null : (
              <p className="text-xs">
                ray <code>{ray_id}</code>
              </p>
            )}
          </div>
          <button
            type="button"
            className="cursor-pointer"
            aria-label="Close this message"
            onClick={() => closeToast(toast_id)}
          >
            ✕
          </button>
        </div>
      ))}
    </section>
  )
}
