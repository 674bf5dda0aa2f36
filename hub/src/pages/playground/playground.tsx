// A place to try the matchmaker: one find with chosen members, its response, timing and explanation; and fake players, who
// take seats without playing.
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import {
  createCloudToken,
  createGameNamespaceTokenPublic,
  findLobby,
  getGameVersionById,
} from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { gameLink, HOME, lobbyLink, namespaceLink, rayLink } from '../../links.ts'
import { Button, LinkButton } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { SelectField, TextArea, TextField } from '../../parts/fields.tsx'
import { Failure, Loading, Notice } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { useMay } from '../game/game.ts'
import { useNamespace } from '../namespace/namespace.ts'
import { ExplanationView } from '../rays/explanation.tsx'
import { useRay } from '../rays/use-ray.ts'
import { Waterfall } from '../rays/waterfall.tsx'
import { FakePlayers } from './fake-players.tsx'
import { type FindBody, type FindOutcome, findAsPlayer, showFailure } from './playground-finds.ts'

type Choice = { mode: string; region: string; tags: string; captcha: string; provider: string }

export default function Playground() {
  const { game, namespace, params } = useNamespace()
  const may = useMay()
  return (
    <Page
      title="Playground"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: namespace.display_name, to: namespaceLink(game.game_id, namespace.namespace_id) },
      ]}
      lead="Finds seats as the players of the game do, and shows why each find ended as it did. The seats are real: they are taken from other players until they expire or are removed."
      actions={
        <LinkButton to={namespaceLink(params.game_id, params.namespace_id, 'matchmaker')}>Matchmaker, live</LinkButton>
      }
    >
      {may(createGameNamespaceTokenPublic) && may(createCloudToken) ? (
        <Tries key={params.namespace_id} />
      ) : (
        <Notice tone="warn">Developers and owners of the group may use the playground.</Notice>
      )}
    </Page>
  )
}

function Tries() {
  const { params } = useNamespace()
  const modes = useModes()
  const [choice, setChoice] = useState<Choice>({ mode: '', region: '', tags: '', captcha: '', provider: 'hcaptcha' })
  const [outcome, setOutcome] = useState<FindOutcome | null>(null)
  const [is_busy, setBusy] = useState(false)
  if (modes === null) return <Loading what="Loading the game modes" />
  if (modes.length === 0)
    return <Notice tone="warn">The deployed version has no game mode, so it has no lobbies.</Notice>
  const mode = choice.mode || modes[0]!
  const body = bodyOf({ ...choice, mode })
  async function send(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (body === null) return
    setBusy(true)
    setOutcome(null)
    await findAsPlayer(params, body).then(setOutcome, showFailure)
    setBusy(false)
  }
  return (
    <>
      <Section
        title="Find a seat"
        actions={
          body === null ? undefined : <CopyAs operation={findLobby} input={{ body }} muster={musterOf(choice, mode)} />
        }
      >
        <form aria-label="Find a seat" className="flex flex-col gap-3 p-4" onSubmit={(event) => void send(event)}>
          <ChoiceFields choice={{ ...choice, mode }} modes={modes} has_bad_tags={body === null} onChange={setChoice} />
          <div>
            <Button type="submit" kind="primary" is_busy={is_busy} disabled={body === null}>
              Find
            </Button>
          </div>
        </form>
      </Section>
      <div aria-live="polite" className="flex min-w-0 flex-col gap-5">
        {is_busy ? <Loading what="The matchmaker finds a seat" /> : null}
        {outcome === null ? null : <OutcomeView outcome={outcome} />}
      </div>
      <FakePlayers body={body} />
    </>
  )
}

/** Names of the game modes of the deployed version. Null while it is loaded. */
function useModes(): string[] | null {
  const { game, namespace } = useNamespace()
  const { data, error } = useCall(getGameVersionById, {
    params: { game_id: game.game_id, version_id: namespace.version_id },
  })
  if (data === undefined) return error === null ? null : []
  return Object.keys(data.version.config.matchmaker?.game_modes ?? {})
}

function ChoiceFields({
  choice,
  modes,
  has_bad_tags,
  onChange,
}: {
  choice: Choice
  modes: readonly string[]
  has_bad_tags: boolean
  onChange: (choice: Choice) => void
}) {
  const { game } = useNamespace()
  const regions = game.available_regions.map(({ region_name_id, region_display_name }) => ({
    value: region_name_id,
    text: region_display_name,
  }))
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
      <SelectField
        label="Game mode"
        value={choice.mode}
        options={modes.map((value) => ({ value, text: value }))}
        onChange={(mode) => onChange({ ...choice, mode })}
      />
      <SelectField
        label="Region"
        value={choice.region}
        options={[{ value: '', text: 'Nearest' }, ...regions]}
        onChange={(region) => onChange({ ...choice, region })}
      />
      <TextArea
        label="Tags"
        rows={2}
        value={choice.tags}
        placeholder="map=desert"
        hint="One tag a line: name=value."
        spellCheck={false}
        onChange={(tags) => onChange({ ...choice, tags })}
        {...(has_bad_tags ? { error: 'Each line needs a name and a value: map=desert.' } : {})}
      />
      <div className="flex flex-col gap-2">
        <SelectField
          label="Captcha provider"
          value={choice.provider}
          options={[
            { value: 'hcaptcha', text: 'hCaptcha' },
            { value: 'turnstile', text: 'Turnstile' },
          ]}
          onChange={(provider) => onChange({ ...choice, provider })}
        />
        <TextField
          label="Captcha response"
          value={choice.captcha}
          hint="Empty: the find sends none."
          autoComplete="off"
          onChange={(captcha) => onChange({ ...choice, captcha })}
        />
      </div>
    </div>
  )
}

/** Null when a tag has no value. */
function bodyOf({ mode, region, tags, captcha, provider }: Choice): FindBody | null {
  const lines = tags.split('\n').filter((line) => line.trim() !== '')
  const pairs = lines.map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim()])
  if (lines.some((line) => line.indexOf('=') < 1)) return null
  return {
    game_modes: [mode],
    ...(region === '' ? {} : { regions: [region] }),
    ...(pairs.length === 0 ? {} : { tags: Object.fromEntries(pairs) as Record<string, string> }),
    ...(captcha === '' ? {} : { captcha: { [provider]: { client_response: captcha } } }),
  }
}

function musterOf({ region, tags }: Choice, mode: string): string {
  const tag_options = tags.split('\n').filter((line) => line.trim() !== '')
  const quoted = (text: string): string => (/^[\w=.-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
  return [
    `find ${quoted(mode)}`,
    ...(region === '' ? [] : [`--region ${quoted(region)}`]),
    ...tag_options.map((line) => `--tag ${quoted(line.trim())}`),
  ].join(' ')
}

function OutcomeView({ outcome: { seat, error, ray_id, took_ms } }: { outcome: FindOutcome }) {
  const { game, params } = useNamespace()
  return (
    <>
      <Section title="Response">
        {error === null ? null : (
          <div className="p-4">
            <Failure error={error} />
          </div>
        )}
        <Facts
          facts={[
            ['Took', `${Math.round(took_ms)} ms, seen from this browser`],
            ...(seat === null
              ? []
              : ([
                  [
                    'Lobby',
                    <Link key="lobby" to={lobbyLink(params.game_id, params.namespace_id, seat.lobby.lobby_id)}>
                      {seat.lobby.lobby_id}
                    </Link>,
                  ],
                  ['Region', seat.lobby.region.display_name],
                  ...Object.entries(seat.ports).map(
                    ([name, { url }]) => [`Port ${name}`, <code key={name}>{url}</code>] as const,
                  ),
                ] as const)),
            ...(ray_id === null
              ? []
              : ([
                  [
                    'Ray',
                    <Link key="ray" to={rayLink(params.game_id, ray_id)} className="font-mono text-xs">
                      {ray_id}
                    </Link>,
                  ],
                ] as const)),
          ]}
        />
      </Section>
      {ray_id === null ? null : <RayView key={ray_id} ray_id={ray_id} game={game} />}
    </>
  )
}

function RayView({ ray_id, game }: { ray_id: string; game: ReturnType<typeof useNamespace>['game'] }) {
  const { timings, explanation, is_waiting } = useRay(ray_id)
  const services = timings.data?.perf_lists
  return (
    <>
      {explanation.data !== undefined ? (
        <ExplanationView game={game} explanation={explanation.data.explanation} />
      ) : is_waiting ? (
        <Loading what="Waiting for the explanation" />
      ) : (
        <Notice>This find was not kept: it was quick and started no lobby. A sample of such finds is explained.</Notice>
      )}
      {services === undefined ? null : (
        <Section title="Where the time was spent">
          <Waterfall game_id={game.game_id} services={services} />
        </Section>
      )}
    </>
  )
}
