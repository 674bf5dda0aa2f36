// The person's own page: the name, the ways to sign in, the passkeys and the sessions.
import { useState } from 'react'
import { updateProfile } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Failure, Pending } from '../../parts/notice.tsx'
import { Facts, Page, Section } from '../../parts/page.tsx'
import { Instant } from '../../parts/time.tsx'
import { SignOutButton } from '../../shell/layout.tsx'
import { useProfile } from '../../shell/person.tsx'
import { Passkeys } from './passkeys.tsx'
import { Sessions } from './sessions.tsx'

export default function Account() {
  const profile = useProfile()
  return (
    <Page title="Your account" actions={<SignOutButton />}>
      <Pending read={profile} />
      {profile.data === undefined ? null : (
        <>
          <Section title="You">
            <Facts
              facts={[
                ['Id', <code key="id">{profile.data.identity.identity_id}</code>],
                ['Joined', <Instant key="join" ts={profile.data.identity.join_ts} />],
                ['Signs in by', waysOf(profile.data.identity.linked_accounts)],
                ['Administrator', profile.data.identity.is_admin ? 'yes' : 'no'],
              ]}
            />
          </Section>
          <Name display_name={profile.data.identity.display_name} />
          <Passkeys />
          <Sessions />
          <p className="flex flex-wrap gap-4 sm:hidden">
            <a href="/docs">Docs</a>
            <a href="/docs/api">API reference</a>
          </p>
        </>
      )}
    </Page>
  )
}

type LinkedAccount = {
  email?: { email: string }
  access_token?: { name: string }
  provider?: { issuer: string; title?: string; email?: string }
}

function waysOf(accounts: readonly LinkedAccount[]): string {
  return accounts
    .map(({ email, access_token, provider }) => {
      if (email !== undefined) return email.email
      if (access_token !== undefined) return `access token "${access_token.name}"`
      return provider === undefined ? '' : providerName(provider)
    })
    .join(', ')
}

function providerName({ issuer, title = issuer, email }: NonNullable<LinkedAccount['provider']>): string {
  return email === undefined ? title : `${title} (${email})`
}

function Name({ display_name }: { display_name: string }) {
  const [name, setName] = useState(display_name)
  const rename = useChange(updateProfile, { done: 'You are renamed.', shows_errors: true })
  return (
    <Section title="Name">
      <form
        className="flex max-w-md flex-col gap-3 p-4"
        onSubmit={(event) => {
          event.preventDefault()
          rename.mutate({ body: { display_name: name } })
        }}
      >
        <TextField label="Display name" maxLength={24} required value={name} onChange={setName} />
        {rename.error === null ? null : <Failure error={rename.error} />}
        <div>
          <Button type="submit" kind="primary" is_busy={rename.isPending} disabled={name === display_name}>
            Rename
          </Button>
        </div>
      </form>
    </Section>
  )
}
