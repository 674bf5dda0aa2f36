// Why a request for a seat ended as it did, in the words of `muster explain`.
import type { Attempt, Explanation } from '@musterhost/contract'
import {
  attemptSentences,
  attemptTitle,
  explanationSentences,
  lobbySentences,
  VERDICT_TEXTS,
  waitSentence,
} from '@musterhost/contract/explanation-words'
import { Link } from '@tanstack/react-router'
import { lobbyLink } from '../../links.ts'
import { shortId } from '../../parts/copy.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Badge } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import type { Game } from '../game/game.ts'
import { Sentence, Sentences } from './sentence.tsx'

type Props = { game: Game; explanation: Explanation }

export function ExplanationView({ game, explanation }: Props) {
  return (
    <Section title="Why it ended so">
      <div className="flex flex-col gap-4 p-4">
        <Sentences texts={explanationSentences(explanation)} />
        <div className="min-w-0">
          <h3>What the request asked for</h3>
          <pre className="overflow-x-auto whitespace-pre-wrap wrap-anywhere">{JSON.stringify(explanation.asked)}</pre>
        </div>
        {explanation.attempts.map((attempt, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: decisions keep their order.
          <Decision key={index} game={game} explanation={explanation} attempt={attempt} index={index} />
        ))}
        {explanation.waits.map((wait) => (
          <Sentence key={wait.lobby_id} text={waitSentence(wait)} />
        ))}
        {explanation.lobbies.map((lobby) => (
          <ChosenLobby key={lobby.lobby_id} game={game} explanation={explanation} lobby={lobby} />
        ))}
      </div>
    </Section>
  )
}

function Decision({ game, explanation, attempt, index }: Props & { attempt: Attempt; index: number }) {
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <h3>{attemptTitle(attempt, index)}</h3>
      <Sentences texts={attemptSentences(attempt)} />
      {attempt.candidates.length === 0 ? null : (
        <div className="rounded-lg border border-line">
          <DataTable
            label={`Lobbies that decision ${index + 1} considered`}
            rows={attempt.candidates}
            rowId={({ lobby_id }) => lobby_id}
            empty=""
            isMarked={({ verdict }) => verdict === 'chosen'}
            columns={[
              {
                id: 'lobby',
                title: 'Lobby',
                cell: ({ lobby_id }) => <LobbyName game={game} explanation={explanation} lobby_id={lobby_id} />,
              },
              { id: 'mode', is_secondary: true, title: 'Game mode', cell: ({ game_mode }) => game_mode },
              { id: 'region', is_secondary: true, title: 'Region', cell: ({ region }) => region },
              {
                id: 'players',
                title: 'Players',
                is_number: true,
                cell: ({ player_count, max_players_normal }) => `${player_count} of ${max_players_normal}`,
              },
              {
                id: 'verdict',
                title: 'Verdict',
                cell: ({ verdict }) =>
                  verdict === 'chosen' ? <Badge tone="good">chosen</Badge> : VERDICT_TEXTS[verdict],
              },
            ]}
          />
        </div>
      )}
    </div>
  )
}

function ChosenLobby({ game, explanation, lobby }: Props & { lobby: Explanation['lobbies'][number] }) {
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <h3>
        Lobby <LobbyName game={game} explanation={explanation} lobby_id={lobby.lobby_id} />
      </h3>
      <Sentences texts={lobbySentences(lobby)} />
      {lobby.log_lines.length === 0 ? null : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
        <pre tabIndex={0} className="max-h-80 overflow-auto rounded-md bg-code p-2">
          {lobby.log_lines.join('\n')}
        </pre>
      )}
    </div>
  )
}

function LobbyName({ game, explanation, lobby_id }: Props & { lobby_id: string }) {
  return (
    <Link
      to={lobbyLink(game.game_id, explanation.namespace_id, lobby_id)}
      title={lobby_id}
      className="font-mono text-xs"
    >
      {shortId(lobby_id)}
    </Link>
  )
}
