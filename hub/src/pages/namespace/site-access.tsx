// Who may open the site of the namespace, and whether its pages need a token for the matchmaker.
import { useState } from 'react'
import {
  removeNamespaceCdnAuthUser,
  setNamespaceCdnAuthType,
  toggleNamespaceDomainPublicAuth,
  updateNamespaceCdnAuthUser,
} from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CodeLine } from '../../parts/copy.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { CheckField, TextField } from '../../parts/fields.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { useMay } from '../game/game.ts'
import { useNamespace } from './namespace.ts'

export function SiteAccess() {
  const { namespace, params } = useNamespace()
  const may = useMay()
  const { auth_type, enable_domain_public_auth } = namespace.config.cdn
  const setType = useChange(setNamespaceCdnAuthType, { done: 'The access to the site is changed.' })
  const setPublic = useChange(toggleNamespaceDomainPublicAuth, { done: 'The access of pages is changed.' })
  const may_change = may(setNamespaceCdnAuthType)
  return (
    <Section title="Access to the site">
      <div className="flex flex-col gap-4 p-4">
        <CheckField
          label="Visitors need a name and a password"
          hint="Basic authentication, for sites that are not public yet."
          checked={auth_type === 'basic'}
          disabled={!may_change || setType.isPending}
          onChange={(is_on) => setType.mutate({ params, body: { auth_type: is_on ? 'basic' : 'none' } })}
        />
        {auth_type === 'basic' ? <AuthUsers /> : null}
        <CheckField
          label="Pages of the site find lobbies without a token"
          hint="Their origin stands for the namespace."
          checked={enable_domain_public_auth}
          disabled={!may_change || setPublic.isPending}
          onChange={(enabled) => setPublic.mutate({ params, body: { enabled } })}
        />
      </div>
    </Section>
  )
}

function AuthUsers() {
  const { namespace, params } = useNamespace()
  const may = useMay()
  const [user, setUser] = useState('')
  const [password, setPassword] = useState('')
  const add = useChange(updateNamespaceCdnAuthUser, {
    done: `${user} may open the site.`,
    shows_errors: true,
    onDone: () => {
      setUser('')
      setPassword('')
    },
  })
  const remove = useChange(removeNamespaceCdnAuthUser, { done: 'The user is removed.' })
  return (
    <div className="flex flex-col gap-3 pl-6">
      <ul className="flex flex-col gap-1">
        {namespace.config.cdn.auth_user_list.map((one) => (
          <li key={one.user} className="flex items-center gap-2">
            <span className="wrap-anywhere">{one.user}</span>
            {may(removeNamespaceCdnAuthUser) ? (
              <Button
                kind="quiet_danger"
                aria-label={`Remove the user ${one.user}`}
                onClick={() => remove.mutate({ params: { ...params, user: one.user } })}
              >
                Remove
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {may(updateNamespaceCdnAuthUser) ? (
        <form
          className="flex max-w-md flex-col gap-3"
          onSubmit={(event) => {
            event.preventDefault()
            add.mutate({ params, body: { user, password } })
          }}
        >
          <TextField label="Name" required maxLength={64} autoComplete="off" value={user} onChange={setUser} />
          <TextField
            label="bcrypt hash of the password"
            hint="The platform never sees the password itself."
            required
            autoComplete="off"
            value={password}
            onChange={setPassword}
          />
          <CodeLine text={`htpasswd -nbBC 10 ${user || 'NAME'} PASSWORD`} label="prints NAME:HASH" />
          {add.error === null ? null : <Failure error={add.error} />}
          <div className="flex gap-2">
            <Button type="submit" is_busy={add.isPending}>
              Add or change the user
            </Button>
            <CopyAs operation={updateNamespaceCdnAuthUser} input={{ params, body: { user, password } }} />
          </div>
        </form>
      ) : null}
    </div>
  )
}
