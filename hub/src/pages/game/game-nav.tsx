// The navigation of a game: its pages, and below them the pages of one of its namespaces. It is the same on all of them.
import { useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { gameLink, namespaceLink } from '../../links.ts'
import { SelectField } from '../../parts/fields.tsx'
import { type Tab, Tabs } from '../../shell/tabs.tsx'
import type { Game } from './game.ts'

/** The namespace that was open last, by game. It lasts as long as the page is loaded. */
const last_opened = new Map<string, string>()

/** `namespace_id`: the open namespace. Without one, the links lead to the one that was open last, or to the first. */
export function GameNav({ game, namespace_id }: { game: Game; namespace_id?: string }) {
  const { game_id, namespaces } = game
  const last = namespaces.find((one) => one.namespace_id === last_opened.get(game_id))
  const shown_id = namespace_id ?? last?.namespace_id ?? namespaces[0]?.namespace_id
  const shown = namespaces.find((one) => one.namespace_id === shown_id)
  useEffect(() => {
    if (namespace_id !== undefined) last_opened.set(game_id, namespace_id)
  }, [game_id, namespace_id])
  return (
    <div className="border-b border-line bg-page">
      <Tabs label={`Pages of ${game.display_name}`} tabs={gameTabs(game_id)} is_bare />
      {shown_id === undefined ? null : (
        <Tabs
          label={`Pages of ${shown?.display_name ?? 'the namespace'}`}
          tabs={namespaceTabs(game_id, shown_id)}
          is_bare
        >
          <NamespaceSelect game={game} namespace_id={shown_id} is_open={namespace_id !== undefined} />
        </Tabs>
      )}
    </div>
  )
}

/** A choice leads to the same page of the other namespace, and to its deploys from a page of the game. */
function NamespaceSelect({ game, namespace_id, is_open }: { game: Game; namespace_id: string; is_open: boolean }) {
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const { game_id, namespaces } = game
  // Records of one namespace, such as a lobby, are not in another.
  const tab = is_open ? (pathname.split('/')[5] ?? '') : ''
  // A new namespace may not be in the record of the game yet.
  const is_listed = namespaces.some((one) => one.namespace_id === namespace_id)
  return (
    <SelectField
      label="Namespace"
      is_hidden_label
      value={namespace_id}
      onChange={(chosen) => void navigate({ to: namespaceLink(game_id, chosen, tab) })}
      options={[
        ...(is_listed ? [] : [{ value: namespace_id, text: '…' }]),
        ...namespaces.map((one) => ({ value: one.namespace_id, text: one.display_name })),
      ]}
    />
  )
}

function gameTabs(game_id: string): Tab[] {
  const to = (tab: string): string => gameLink(game_id, tab)
  return [
    { text: 'Overview', to: to(''), is_exact: true },
    { text: 'Search', to: to('search') },
    { text: 'Requests', to: to('rays') },
    { text: 'Versions', to: to('versions') },
    { text: 'Builds', to: to('builds') },
    { text: 'Sites', to: to('sites') },
    { text: 'Tokens', to: to('tokens') },
    { text: 'Secrets', to: to('secrets') },
    { text: 'Schedules', to: to('schedules') },
    { text: 'Notices', to: to('notices') },
    { text: 'Status page', to: to('status') },
    { text: 'Game settings', to: to('settings') },
  ]
}

function namespaceTabs(game_id: string, namespace_id: string): Tab[] {
  const to = (tab: string): string => namespaceLink(game_id, namespace_id, tab)
  return [
    { text: 'Deploys', to: to(''), is_exact: true },
    { text: 'Lobbies', to: to('lobbies') },
    { text: 'Matchmaker', to: to('matchmaker') },
    { text: 'Playground', to: to('playground') },
    { text: 'Analytics', to: to('analytics') },
    { text: 'Ratings', to: to('ratings') },
    { text: 'Key-value', to: to('kv') },
    { text: 'Settings', to: to('settings') },
  ]
}
