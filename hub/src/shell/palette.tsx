// The command palette: go to a page, game or namespace, or run what the open page can do. React Aria filters the list, moves
// through it by arrow keys, and reads it out. The module is loaded when the palette opens first.
import { useNavigate, useParams } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
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
import { getOverview } from '../api/operations.gen.ts'
import { useCall } from '../api/queries.ts'
import { ACCOUNT, gameLink, groupLink, HOME, namespaceLink, platformLink } from '../links.ts'
import { useFocusAfterwards } from '../parts/focus.ts'
import { type PageAction, useAllPageActions } from './page-actions.ts'
import { usePerson } from './person.tsx'

/** Entries of the open list. Further ones appear when the person types more. */
const ENTRIES_MAX = 200

type Entry = { id: string; title: string; kind: string; run: () => void }

export default function Palette({ onClose, onShortcuts }: { onClose: () => void; onShortcuts: () => void }) {
  const { contains } = useFilter({ sensitivity: 'base' })
  const [text, setText] = useState('')
  const entries = useEntries(text.trim(), onShortcuts)
  useFocusAfterwards()
  return (
    <ModalOverlay
      isOpen
      isDismissable
      onOpenChange={(is_open) => (is_open ? undefined : onClose())}
      className="fixed inset-0 z-40 flex items-start justify-center bg-[#0008] p-3 pt-[10vh]"
    >
      <Modal className="w-full max-w-xl rounded-xl border border-line bg-page shadow-2xl outline-none">
        <Dialog aria-label="Command palette" className="flex max-h-[70vh] flex-col outline-none">
          <Autocomplete filter={contains} inputValue={text} onInputChange={setText}>
            <SearchField aria-label="Go to or do" autoFocus className="border-b border-line p-3">
              <Input
                placeholder="Type a page, a game, an id or an action"
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

const PLATFORM_PAGES = ['nodes', 'regions', 'groups', 'people', 'backups', 'jobs', 'audit', 'settings'] as const
const GAME_PAGES = ['search', 'rays', 'versions', 'builds', 'sites', 'tokens', 'secrets', 'settings'] as const
/** Pages whose address has another name than the navigation. */
const WORDS: Readonly<Record<string, string>> = { rays: 'requests', audit: 'audit log' }
const wordsOf = (tab: string): string => WORDS[tab] ?? tab
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** `text`: what the person has typed. An id leads to the search of each game, for lobbies, players and rays. */
function useEntries(text: string, onShortcuts: () => void): Entry[] {
  const navigate = useNavigate()
  const actions = useAllPageActions()
  const { data } = useCall(getOverview, {})
  const { is_admin } = usePerson()
  const { game_id } = useParams({ strict: false }) as { game_id?: string }
  return useMemo(() => {
    const page = (to: string, title: string, kind = 'page'): Entry => ({
      id: to,
      title,
      kind,
      run: () =>
        void navigate({
          to: to.split('?')[0]!,
          search: Object.fromEntries(new URLSearchParams(to.split('?')[1])) as never,
        }),
    })
    const { games = [], namespaces = [], groups = [] } = data ?? {}
    const names = new Map(games.map((game) => [game.game_id, game.display_name]))
    const of_id = ID.test(text)
      ? games.map((game) =>
          page(`${gameLink(game.game_id, 'search')}?text=${text}`, `${text} in ${game.display_name}`, 'search'),
        )
      : []
    const all = [
      ...of_id,
      page(HOME, 'Home'),
      ...games.map((game) => page(gameLink(game.game_id), game.display_name, 'game')),
      ...namespaces.map((one) =>
        page(
          namespaceLink(one.game_id, one.namespace_id),
          `${names.get(one.game_id)}: ${one.display_name}`,
          'namespace',
        ),
      ),
      ...(game_id === undefined
        ? []
        : GAME_PAGES.map((tab) => page(gameLink(game_id, tab), `${names.get(game_id) ?? 'Game'}: ${wordsOf(tab)}`))),
      ...groups.map((group) => page(groupLink(group.group_id), group.display_name, 'group')),
      ...(is_admin
        ? [
            page(platformLink(), 'Platform'),
            ...PLATFORM_PAGES.map((tab) => page(platformLink(tab), `Platform: ${wordsOf(tab)}`)),
          ]
        : []),
      page(ACCOUNT, 'Your account'),
    ]
    const of_page = actions.map(
      (action: PageAction): Entry => ({ ...action, id: `do ${action.id}`, kind: 'this page' }),
    )
    // What is typed most is a name; so an action never comes before the game of the same name.
    const shortcuts = { id: 'shortcuts', title: 'Keyboard shortcuts', kind: '?', run: onShortcuts }
    return [...all.slice(0, ENTRIES_MAX), ...of_page, shortcuts]
  }, [actions, data, game_id, is_admin, navigate, onShortcuts, text])
}
