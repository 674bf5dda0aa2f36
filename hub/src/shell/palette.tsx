// The command palette: go to a page, game or namespace, or run what the open page can do. React Aria filters the list, moves
// through it by arrow keys, and reads it out. The module is loaded when the palette opens first.
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import {
  Autocomplete,
  Dialog,
  Input,
  Menu,
  MenuItem,
  Modal,
  ModalOverlay,
  SearchField,
  useFilter,
} from 'react-aria-components'
import { ACCOUNT, gameLink, HOME, platformLink } from '../links.ts'
import { type PageAction, useAllPageActions } from './page-actions.ts'
import { useGames, usePerson } from './person.tsx'

/** Entries of the open list. Further ones appear when the person types more. */
const ENTRIES_MAX = 200

type Entry = { id: string; title: string; kind: string; run: () => void }

export default function Palette({ onClose }: { onClose: () => void }) {
  const { contains } = useFilter({ sensitivity: 'base' })
  const entries = useEntries()
  return (
    <ModalOverlay
      isOpen
      isDismissable
      onOpenChange={(is_open) => (is_open ? undefined : onClose())}
      className="fixed inset-0 z-40 flex items-start justify-center bg-[#0008] p-3 pt-[10vh]"
    >
      <Modal className="w-full max-w-xl rounded-xl border border-line bg-page shadow-2xl outline-none">
        <Dialog aria-label="Command palette" className="flex max-h-[70vh] flex-col outline-none">
          <Autocomplete filter={contains}>
            <SearchField aria-label="Go to or do" autoFocus className="border-b border-line p-3">
              <Input
                placeholder="Type a page, a game or an action"
                className="w-full bg-transparent text-base outline-none"
              />
            </SearchField>
            <Menu
              items={entries}
              aria-label="Results"
              className="overflow-y-auto p-2 outline-none"
              renderEmptyState={() => <p className="p-3 text-soft">Nothing matches.</p>}
            >
              {({ id, title, kind, run }) => (
                <MenuItem
                  id={id}
                  textValue={`${title} ${kind}`}
                  onAction={() => {
                    onClose()
                    run()
                  }}
                  className="flex cursor-pointer items-center justify-between gap-4 rounded-md px-3 py-2 outline-none data-focused:bg-mark"
                >
                  <span className="min-w-0 truncate">{title}</span>
                  <span className="text-xs whitespace-nowrap text-soft">{kind}</span>
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

function useEntries(): Entry[] {
  const navigate = useNavigate()
  const actions = useAllPageActions()
  const games = useGames()
  const { is_admin } = usePerson()
  return useMemo(() => {
    const page = (to: string, title: string, kind = 'page'): Entry => ({
      id: to,
      title,
      kind,
      run: () => void navigate({ to }),
    })
    const of_page = actions.map(
      (action: PageAction): Entry => ({ ...action, id: `do ${action.id}`, kind: 'this page' }),
    )
    const of_games = (games.data?.games ?? []).map((game) => page(gameLink(game.game_id), game.display_name, 'game'))
    const of_platform = is_admin ? [page(platformLink(), 'Platform')] : []
    const all = [page(HOME, 'Home'), ...of_games, ...of_platform, page(ACCOUNT, 'Your account')]
    // What is typed most is a name; so an action never comes before the game of the same name.
    return [...all.slice(0, ENTRIES_MAX), ...of_page]
  }, [actions, games.data, is_admin, navigate])
}
