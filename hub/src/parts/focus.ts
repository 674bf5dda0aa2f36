// The place of the keyboard in a page. When the focused element is removed, the browser forgets the place, and Tab starts at the
// top of the page again. Here the content of the page gets the focus then.
import { useEffect } from 'react'

export const CONTENT_ID = 'content'

function focusContentIfLost(): void {
  if (document.activeElement !== null && document.activeElement !== document.body) return
  document.getElementById(CONTENT_ID)?.focus({ preventScroll: true })
}

/** For the frame of all pages: watches elements that leave the content. */
export function useKeptFocus(): void {
  useEffect(() => {
    const content = document.getElementById(CONTENT_ID)
    if (content === null) return
    let focused: EventTarget | null = null
    const onFocus = (event: FocusEvent): void => {
      focused = event.target
    }
    const observer = new MutationObserver(() => {
      if (!(focused instanceof Element) || focused.isConnected) return
      focused = null
      focusContentIfLost()
    })
    content.addEventListener('focusin', onFocus)
    observer.observe(content, { childList: true, subtree: true })
    return () => {
      content.removeEventListener('focusin', onFocus)
      observer.disconnect()
    }
  }, [])
}

/** For dialogs and the palette. React Aria returns the focus to the button that opened the dialog, a frame later, unless the button is gone. */
export function useFocusAfterwards(): void {
  useEffect(
    () => () => {
      requestAnimationFrame(() => requestAnimationFrame(focusContentIfLost))
    },
    [],
  )
}
