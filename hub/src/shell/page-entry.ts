import type { ComponentType } from 'react'

/** A page: its path below that of its frame, and its module, which is loaded when the page opens first. */
export type PageEntry = { path: string; load: () => Promise<{ default: ComponentType }> }
