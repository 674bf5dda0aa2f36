// Custom domains of the site: the exact DNS record of each claim, and its state.
import { useState } from 'react'
import { addNamespaceDomain, removeNamespaceDomain } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { CopyButton } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Badge, Failure, type Tone } from '../../parts/notice.tsx'
import { Empty, Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'
import { useMay } from '../game/game.ts'
import { type Namespace, useNamespace } from './namespace.ts'

type Domain = Namespace['config']['cdn']['domains'][number]

const TONES: Record<Domain['verification_status'], Tone> = { active: 'good', pending: 'warn', failed: 'bad' }

export function Domains() {
  const { namespace, params } = useNamespace()
  const may = useMay()
  const [domain, setDomain] = useState('')
  const add = useChange(addNamespaceDomain, {
    done: `${domain} is claimed. Set its DNS record.`,
    shows_errors: true,
    onDone: () => setDomain(''),
  })
  const { domains } = namespace.config.cdn
  return (
    <Section title="Domains" lead="The site under a domain of your own. The platform orders the certificate.">
      {domains.length === 0 ? <Empty>The site has no domain of its own.</Empty> : null}
      <ul className="divide-y divide-line">
        {domains.map((one) => (
          <DomainRow key={one.domain} domain={one} />
        ))}
      </ul>
      {may(addNamespaceDomain) ? (
        <form
          className="flex flex-col gap-3 border-t border-line p-4"
          onSubmit={(event) => {
            event.preventDefault()
            add.mutate({ params, body: { domain } })
          }}
        >
          <div className="flex flex-wrap items-end gap-2">
            <div className="w-72 max-w-full">
              <TextField label="Domain" placeholder="play.example.com" required value={domain} onChange={setDomain} />
            </div>
            <Button type="submit" is_busy={add.isPending}>
              Add
            </Button>
            <CopyAs
              operation={addNamespaceDomain}
              input={{ params, body: { domain } }}
              muster={`domains add ${domain || 'play.example.com'} --namespace ${namespace.name_id}`}
            />
          </div>
          {add.error === null ? null : <Failure error={add.error} />}
        </form>
      ) : null}
    </Section>
  )
}

function DomainRow({ domain }: { domain: Domain }) {
  const { params } = useNamespace()
  const may = useMay()
  const [is_removing, setRemoving] = useState(false)
  const { verification_status, verification_records, verification_errors } = domain
  return (
    <li className="flex flex-col gap-2 p-4">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="flex flex-wrap items-center gap-2">
          <strong className="wrap-anywhere">{domain.domain}</strong>
          <Badge tone={TONES[verification_status]}>{verification_status}</Badge>
        </p>
        {may(removeNamespaceDomain) ? (
          <Button kind="quiet_danger" onClick={() => setRemoving(true)} aria-label={`Remove ${domain.domain}`}>
            Remove
          </Button>
        ) : null}
      </div>
      {verification_status === 'active' ? null : (
        <>
          <p>Set {verification_records.length === 1 ? 'this DNS record' : 'one of these DNS records'}:</p>
          <ul className="flex flex-col gap-2">
            {verification_records.map(({ type, name, value }) => (
              <li
                key={type}
                className="grid grid-cols-[auto_minmax(0,1fr)] items-start gap-2 rounded-md bg-code p-2 sm:grid-cols-[auto_minmax(0,1fr)_auto]"
              >
                <code className="font-semibold">{type}</code>
                <code className="wrap-anywhere">
                  {name} → {value}
                </code>
                <span className="max-sm:col-start-2">
                  <CopyButton text={value} label="Copy the value" />
                </span>
              </li>
            ))}
          </ul>
          {verification_errors.map((line) => (
            <p key={line} className="text-xs text-warn">
              {line}
            </p>
          ))}
        </>
      )}
      {domain.certificate === undefined ? null : <CertificateLine certificate={domain.certificate} />}
      {is_removing ? (
        <ActionDialog
          operation={removeNamespaceDomain}
          input={{ params: { ...params, domain: domain.domain } }}
          words={{
            title: `Remove ${domain.domain}`,
            submit: 'Remove',
            done: `${domain.domain} is removed.`,
            is_danger: true,
          }}
          onClose={() => setRemoving(false)}
        >
          <p>The site is no longer served there. No other group can claim a verified domain for 30 days.</p>
        </ActionDialog>
      ) : null}
    </li>
  )
}

function CertificateLine({ certificate: { expire_ts, error } }: { certificate: NonNullable<Domain['certificate']> }) {
  const now = useNow()
  const is_over = expire_ts !== undefined && Date.parse(expire_ts) <= now
  return (
    <>
      <p className="flex flex-wrap items-center gap-x-2">
        {expire_ts === undefined ? (
          'It has no certificate yet.'
        ) : (
          <>
            Its certificate {is_over ? 'expired' : 'expires'} <Ago ts={expire_ts} />.
          </>
        )}{' '}
        {error === undefined ? 'The platform renews it.' : 'The last order failed. The platform orders it again.'}
      </p>
      {error === undefined ? null : <p className="text-xs wrap-anywhere text-warn">{error}</p>}
    </>
  )
}
