// The first steps of a new group. Each is ticked when the platform has seen it done, and shows the command that does it.
import type { getOverview, ResponseOf } from '@musterhost/contract'
import type { ReactNode } from 'react'
import { CodeLine } from '../../parts/copy.tsx'
import { Section } from '../../parts/page.tsx'

type Overview = ResponseOf<typeof getOverview>

type Props = { group: Overview['groups'][number]; games: Overview['games']; namespaces: Overview['namespaces'] }

export function FirstSteps({ group, games, namespaces }: Props) {
  const { has_game, has_build, has_deploy, has_player } = group.first_steps
  const game = games.find(({ group_id }) => group_id === group.group_id)
  const namespace = namespaces.find(({ game_id, name_id }) => game_id === game?.game_id && name_id === 'prod')
  return (
    <Section title={`First steps of ${group.display_name}`}>
      <ol className="flex flex-col gap-4 p-4">
        <Step text="Sign in on your own machine" is_done={has_build}>
          <CodeLine text={`npm install --global ${location.origin}/cli.tgz`} />
          <CodeLine text={`muster login ${location.origin}`} />
        </Step>
        <Step text="Make a game from a template" is_done={has_game}>
          <CodeLine text="muster init my-game && cd my-game" />
        </Step>
        <Step text="Upload its server and its page, and deploy them" is_done={has_build && has_deploy}>
          <CodeLine text={game === undefined ? 'muster deploy' : `muster deploy --game ${game.name_id}`} />
        </Step>
        <Step text="Let the first player in" is_done={has_player}>
          {game === undefined || namespace === undefined ? (
            <p className="text-soft">The last line of the deploy is the address of the game. Open it.</p>
          ) : (
            <CodeLine text={`muster find --game ${game.name_id} --namespace ${namespace.name_id}`} />
          )}
        </Step>
      </ol>
    </Section>
  )
}

function Step({ text, is_done, children }: { text: string; is_done: boolean; children: ReactNode }) {
  return (
    <li className="grid grid-cols-[1.5rem_minmax(0,1fr)] gap-x-2 gap-y-1">
      <span aria-hidden="true" className={is_done ? 'text-good' : 'text-soft'}>
        {is_done ? '✓' : '○'}
      </span>
      <p className={is_done ? 'text-soft' : 'font-medium'}>
        {text}
        <span className="sr-only">{is_done ? ' (done)' : ' (not done yet)'}</span>
      </p>
      {is_done ? null : <div className="col-start-2">{children}</div>}
    </li>
  )
}
