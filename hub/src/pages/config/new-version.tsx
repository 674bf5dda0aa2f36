// A new version: its config in an editor, checked by the platform while it is written.
import type { BodyOf, createGameVersion } from '@musterhost/contract'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { call } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import {
  createGameVersion as createVersion,
  getGameVersionById,
  listGameBuilds,
  listGameCdnSites,
  reserveVersionName,
  validateGameVersion,
} from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { gameLink, HOME, versionLink } from '../../links.ts'
import { Button } from '../../parts/button.tsx'
import { CopyButton } from '../../parts/copy.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Failure, Loading, Notice } from '../../parts/notice.tsx'
import { Empty, Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'
import { errorAt } from '../forms.ts'
import { useGame, useMay } from '../game/game.ts'

const Editor = lazy(() => import('./editor.tsx'))

type Config = BodyOf<typeof createGameVersion>['config']

/** Uploads that are offered beside the editor. */
const UPLOADS_SHOWN = 8

export default function NewVersion() {
  const { game } = useGame()
  const may = useMay()
  const { from } = useSearch({ strict: false }) as { from?: string }
  const version_id = from ?? game.versions[0]?.version_id ?? ''
  const params = { game_id: game.game_id, version_id }
  const base = useCall(getGameVersionById, { params }, { enabled: version_id !== '' })
  const config = base.data?.version.version_id === version_id ? base.data.version.config : null
  return (
    <Page
      title="New version"
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: 'Versions', to: gameLink(game.game_id, 'versions') },
      ]}
      lead="Begin with the config of an earlier version, and name the build and the site that were uploaded. Secrets are empty in it: write them again."
    >
      {may(createVersion) ? (
        config === null && version_id !== '' && base.error === null ? (
          <Loading what="Loading the config" />
        ) : (
          <VersionForm config={config} />
        )
      ) : (
        <Notice>Developers and owners of the group create versions.</Notice>
      )}
    </Page>
  )
}

function VersionForm({ config }: { config: Config | null }) {
  const { game } = useGame()
  const navigate = useNavigate()
  const params = { game_id: game.game_id }
  const [text, setText] = useState(() => JSON.stringify(config ?? {}, null, 2))
  const [display_name, setName] = useState('')
  const [problem, setProblem] = useState<CallError | null>(null)
  useEffect(() => {
    call(reserveVersionName, { params: { game_id: game.game_id } }).then(
      (reserved) => setName((now) => (now === '' ? reserved.version_display_name : now)),
      () => undefined,
    )
  }, [game.game_id])
  const create = useChange(createVersion, {
    done: `The version ${display_name} is created.`,
    shows_errors: true,
    onDone: (made) => void navigate({ to: versionLink(game.game_id, made.version_id) }),
  })
  function submit(): void {
    setProblem(null)
    try {
      create.mutate({ params, body: { display_name, config: JSON.parse(text) as Config } })
    } catch (error) {
      setProblem(new CallError('INVALID_JSON', `The config is not JSON: ${(error as Error).message}`))
    }
  }
  const error = problem ?? create.error
  return (
    <div className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_18rem]">
      <div className="flex min-w-0 flex-col gap-5">
        <Section title="Config" actions={<CopyButton text={text} label="Copy the config" is_large />}>
          <Suspense fallback={<Loading what="Loading the editor" />}>
            <Editor
              initial_text={text}
              onChange={setText}
              check={(config_now) => call(validateGameVersion, { params, body: { display_name, config: config_now } })}
            />
          </Suspense>
        </Section>
        <form
          className="flex flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault()
            submit()
          }}
        >
          <div className="max-w-md">
            <TextField
              label="Name of the version"
              required
              maxLength={128}
              value={display_name}
              onChange={setName}
              error={errorAt(error, 'display_name')}
            />
          </div>
          {error === null ? null : <Failure error={error} />}
          <div>
            <Button type="submit" kind="primary" is_busy={create.isPending} disabled={display_name === ''}>
              Create the version
            </Button>
          </div>
        </form>
      </div>
      <Uploads />
    </div>
  )
}

/** The newest uploads, whose ids the config names. */
function Uploads() {
  const { game } = useGame()
  const params = { game_id: game.game_id }
  const builds = useCall(listGameBuilds, { params })
  const sites = useCall(listGameCdnSites, { params })
  const complete_builds = (builds.data?.builds ?? []).filter(({ complete }) => complete).slice(0, UPLOADS_SHOWN)
  const complete_sites = (sites.data?.sites ?? []).filter(({ complete }) => complete).slice(0, UPLOADS_SHOWN)
  return (
    <aside aria-label="Uploads" className="flex flex-col gap-5">
      <Section title="Builds" lead="For image_id of docker.">
        {complete_builds.length === 0 ? <Empty>No build is complete.</Empty> : null}
        <UploadList uploads={complete_builds.map((build) => ({ ...build, id: build.build_id }))} />
      </Section>
      <Section title="Sites" lead="For site_id of cdn.">
        {complete_sites.length === 0 ? <Empty>No site is complete.</Empty> : null}
        <UploadList uploads={complete_sites.map((site) => ({ ...site, id: site.site_id }))} />
      </Section>
    </aside>
  )
}

function UploadList({ uploads }: { uploads: readonly { id: string; display_name: string; create_ts: string }[] }) {
  return (
    <ul className="divide-y divide-line">
      {uploads.map(({ id, display_name, create_ts }) => (
        <li key={id} className="flex items-center justify-between gap-2 px-3 py-2">
          <span className="min-w-0">
            <span className="block truncate">{display_name}</span>
            <span className="text-xs text-soft">
              <Ago ts={create_ts} />
            </span>
          </span>
          <CopyButton text={id} label="Copy the id" />
        </li>
      ))}
    </ul>
  )
}
