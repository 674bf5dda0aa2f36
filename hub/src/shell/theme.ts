// Light or dark: as the system, until the person chooses one. The choice is kept in this browser.
import { useSyncExternalStore } from 'react'

const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'muster.theme'
const listeners = new Set<() => void>()

function readTheme(): Theme {
  const kept = localStorage.getItem(KEY)
  return THEMES.find((theme) => theme === kept) ?? 'system'
}

export function applyTheme(theme: Theme = readTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(readTheme()) + 1) % THEMES.length]!
  localStorage.setItem(KEY, next)
  applyTheme(next)
  for (const listener of listeners) listener()
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, readTheme)
}
