// The keys of the hub and of the open page, as a dialog that `?` opens.
import { Dialog } from '../parts/lazy-dialogs.tsx'
import { useAllPageActions } from './page-actions.ts'

type Shortcut = { keys: string; does: string }

const EVERYWHERE: readonly Shortcut[] = [
  { keys: 'Ctrl K', does: 'Open the command palette' },
  { keys: '?', does: 'Show this list' },
  { keys: 'Esc', does: 'Close a dialog or the palette' },
  { keys: '← → Home End', does: 'In a chart: show the values of an instant' },
]

export function Shortcuts({ onClose }: { onClose: () => void }) {
  const actions = useAllPageActions()
  const of_page = actions.flatMap(({ keys, title }) => (keys === undefined ? [] : [{ keys, does: title }]))
  const others = actions.filter(({ keys }) => keys === undefined)
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <List title="Everywhere" shortcuts={EVERYWHERE} />
      {of_page.length === 0 ? null : <List title="This page" shortcuts={of_page} />}
      {others.length === 0 ? null : (
        <section className="flex flex-col gap-1">
          <h3>This page, in the palette</h3>
          <ul>
            {others.map(({ id, title }) => (
              <li key={id}>{title}</li>
            ))}
          </ul>
        </section>
      )}
    </Dialog>
  )
}

function List({ title, shortcuts }: { title: string; shortcuts: readonly Shortcut[] }) {
  return (
    <section className="flex flex-col gap-1">
      <h3>{title}</h3>
      <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1">
        {shortcuts.map(({ keys, does }) => (
          <div key={keys} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-code px-1.5 py-0.5">{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** Whether a key pressed here is text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest('input:not([type=range]), textarea, select, [contenteditable=true]') !== null
  )
}
