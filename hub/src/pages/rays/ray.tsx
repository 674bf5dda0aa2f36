// One request: where its time was spent, and why it ended as it did.
import type { ServicePerf } from '@musterhost/contract'
import { microsecondsText } from '@musterhost/contract/explanation-words'
import { Link, useParams } from '@tanstack/react-router'
import { explainRay, getRayPerfLogs } from '../../api/operations.gen.ts'
import { gameLink, HOME } from '../../links.ts'
import { ApiName } from '../../parts/api-name.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Badge, Loading, Notice, Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Ago, Instant } from '../../parts/time.tsx'
import { useGame, useMay } from '../game/game.ts'
import { ExplanationView } from './explanation.tsx'
import { useRay } from './use-ray.ts'
import { Waterfall } from './waterfall.tsx'

export default function RayPage() {
  const { game } = useGame()
  const may = useMay()
  const { ray_id = '' } = useParams({ strict: false }) as { ray_id?: string }
  return (
    <Page
      title="Request"
      mark={<ShortId id={ray_id} />}
      crumbs={[
        { text: 'Home', to: HOME },
        { text: game.display_name, to: gameLink(game.game_id) },
        { text: 'Requests', to: gameLink(game.game_id, 'rays') },
      ]}
      actions={
        <span className="flex flex-wrap gap-x-5">
          <CopyAs
            operation={explainRay}
            input={{ params: { ray_id } }}
            muster={`explain ${ray_id}`}
            label="Explain as …"
          />
          <CopyAs
            operation={getRayPerfLogs}
            input={{ params: { ray_id } }}
            muster={`explain ${ray_id} --timings`}
            label="Timings as …"
          />
        </span>
      }
    >
      {may(explainRay) ? (
        <Ray key={ray_id} ray_id={ray_id} />
      ) : (
        <Notice tone="warn">Developers and owners of the group may see requests.</Notice>
      )}
    </Page>
  )
}

function Ray({ ray_id }: { ray_id: string }) {
  const { game } = useGame()
  const { timings, explanation, is_waiting } = useRay(ray_id)
  const services = timings.data?.perf_lists
  const is_missing = timings.error?.code === 'RAY_NOT_FOUND' && explanation.data === undefined
  if (is_missing && is_waiting) return <Loading what="Waiting until the request is stored" />
  if (services === undefined && explanation.data === undefined) return <Pending read={timings} what="Loading the ray" />
  return (
    <>
      {services === undefined ? null : <Summary services={services} />}
      {explanation.data === undefined ? (
        <NotExplained code={explanation.error?.code} />
      ) : (
        <ExplanationView game={game} explanation={explanation.data.explanation} />
      )}
      {services === undefined ? (
        <Notice>The timings of this request were not kept.</Notice>
      ) : (
        <Section title="Where the time was spent">
          <Waterfall game_id={game.game_id} services={services} />
        </Section>
      )}
      <p>
        <Link to={gameLink(game.game_id, 'search')} search={{ text: ray_id } as never}>
          Find the player and the lobby of this request
        </Link>
      </p>
    </>
  )
}

function NotExplained({ code }: { code: string | undefined }) {
  if (code === undefined) return <Loading what="Loading the explanation" />
  return (
    <Notice>
      There is no explanation. It is kept for requests for seats that failed, were slow or started a lobby, and for a
      sample of the others.
    </Notice>
  )
}

function Summary({ services }: { services: readonly ServicePerf[] }) {
  const first = services.toSorted((a, b) => (a.ts < b.ts ? -1 : 1))[0]
  if (first === undefined) return null
  // A refusal ends with a mark that is its code.
  const code = services
    .flatMap(({ marks }) => marks)
    .map(({ label }) => label)
    .find((label) => /^[A-Z][A-Z_]+$/.test(label))
  const longest = Math.max(...services.map(({ duration }) => duration))
  return (
    <Section title="Summary">
      <Facts
        facts={[
          [
            'Operation',
            <code key="operation">
              {services.find(({ svc_name }) => svc_name !== 'edge')?.operation ?? first.operation}
            </code>,
          ],
          [
            'Arrived',
            <span key="arrived">
              <Instant ts={first.ts} /> (<Ago ts={first.ts} />)
            </span>,
          ],
          ['Took', microsecondsText(longest)],
          [
            'Result',
            code === undefined ? (
              <Badge key="result" tone="good">
                ok
              </Badge>
            ) : (
              <Badge key="result" tone="bad">
                <ApiName name={code} />
              </Badge>
            ),
          ],
        ]}
      />
    </Section>
  )
}
