// Short messages about the outcome of an action. The newest few are shown.
import { useSyncExternalStore } from 'react'

export type Toast = { toast_id: number; kind: 'good' | 'bad'; text: string; ray_id: string | null }

const TOASTS_MAX = 4
const GOOD_SHOWN_MS = 5_000
const BAD_SHOWN_MS = 15_000

let toasts: readonly Toast[] = []
let next_id = 1
const listeners = new Set<() => void>()

function setToasts(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

export function showToast(kind: Toast['kind'], text: string, ray_id: string | null = null): void {
  const toast = { toast_id: next_id++, kind, text, ray_id }
  setToasts([...toasts, toast].slice(-TOASTS_MAX))
  setTimeout(() => closeToast(toast.toast_id), kind === 'good' ? GOOD_SHOWN_MS : BAD_SHOWN_MS)
}

export function closeToast(toast_id: number): void {
  setToasts(toasts.filter((toast) => toast.toast_id !== toast_id))
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
}
