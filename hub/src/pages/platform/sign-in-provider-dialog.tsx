// The form of a provider of sign-ins, with a check of its issuer.
import type { BodyOf, putSignInProvider as putOperation, SignInProvider } from '@musterhost/contract'
import { useState } from 'react'
import { checkSignInIssuer, putSignInProvider } from '../../api/operations.gen.ts'
import { useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CheckField, TextArea, TextField } from '../../parts/fields.tsx'
import { FormDialog } from '../../parts/lazy-dialogs.tsx'
import { Failure, Notice } from '../../parts/notice.tsx'
import { plural } from '../../parts/numbers.ts'
import { errorAt } from '../forms.ts'

type Body = BodyOf<typeof putOperation>
type Rule = NonNullable<Body['rules']>[number]
type Texts = {
  name: string
  title: string
  issuer: string
  client_id: string
  client_secret: string
  scopes: string
  groups_claim: string
  rules: string
  admin_values: string
  session_hours: string
}

const DEFAULTS: Texts = {
  ...{ name: '', title: '', issuer: '', client_id: '', client_secret: '' },
  ...{ scopes: 'openid profile email', groups_claim: '', rules: '', admin_values: '', session_hours: '168' },
}

type Props = { provider: SignInProvider | null; onSaved: (provider: SignInProvider) => void; onClose: () => void }

export function SignInProviderDialog({ provider, onSaved, onClose }: Props) {
  const [texts, setTexts] = useState<Texts>(provider === null ? DEFAULTS : textsOf(provider))
  const [requires_value, setRequires] = useState(provider?.requires_value ?? false)
  const [links_by_email, setLinks] = useState(provider?.links_by_email ?? false)
  const put = useChange(putSignInProvider, {
    done: `${texts.title} is saved.`,
    onDone: (response) => onSaved(response.provider),
    shows_errors: true,
  })
  const rules = rulesOf(texts.rules)
  const field = (member: keyof Texts) => ({
    value: texts[member],
    onChange: (text: string) => setTexts({ ...texts, [member]: text }),
    autoComplete: 'off',
    spellCheck: false,
    error: errorAt(put.error, member),
  })
  const body = { ...bodyOf(texts), rules: rules ?? [], requires_value, links_by_email }
  return (
    <FormDialog
      title={provider === null ? 'Add a provider' : `Change ${provider.title}`}
      submit="Save"
      is_wide
      is_busy={put.isPending}
      is_ready={rules !== null && [texts.name, texts.title, texts.issuer, texts.client_id].every((text) => text !== '')}
      error={put.error}
      onSubmit={() => put.mutate({ params: { provider_name: texts.name.trim() }, body })}
      onClose={onClose}
    >
      <TextField label="Text of the button" hint="Sign in with …" placeholder="Example Studio" {...field('title')} />
      {provider === null ? (
        <TextField
          label="Name"
          hint="Part of its addresses: lower-case letters, digits and dashes. It cannot be changed."
          placeholder="keycloak"
          maxLength={32}
          {...field('name')}
        />
      ) : null}
      <TextField
        label="Issuer"
        hint="Without /.well-known/openid-configuration."
        placeholder="https://accounts.google.com"
        {...field('issuer')}
      />
      <IssuerCheck issuer={texts.issuer.trim()} />
      <TextField label="Client id" {...field('client_id')} />
      <TextField
        label="Client secret"
        type="password"
        hint={`It is stored encrypted and not shown again.${provider?.has_secret === true ? ' Empty: it stays, unless the issuer or the client id changes.' : ''}`}
        {...field('client_secret')}
      />
      <TextField label="Scopes" {...field('scopes')} />
      <TextField
        label="Claim with groups"
        hint="Empty: the provider gives no roles. A dot enters an object."
        placeholder="groups"
        {...field('groups_claim')}
      />
      <TextArea
        label="Roles by group"
        hint={
          rules === null
            ? 'A line is not as it must be: value, group id and developer or viewer, with spaces between.'
            : 'A line for each: value, group id and developer or viewer. They are applied at each sign-in.'
        }
        rows={3}
        {...field('rules')}
      />
      <TextField
        label="Values of administrators, with commas between"
        hint="People with one of them administer the whole platform."
        {...field('admin_values')}
      />
      <TextField label="Hours of a session" type="number" min={1} max={2160} {...field('session_hours')} />
      <CheckField
        label="Only people with one of these values"
        hint="Set it for a provider where anyone can have an account, as Google."
        checked={requires_value}
        onChange={setRequires}
      />
      <CheckField
        label="The same e-mail address is the same person"
        hint="Only verified addresses count. Set it only for a provider that you trust with them."
        checked={links_by_email}
        onChange={setLinks}
      />
    </FormDialog>
  )
}

function IssuerCheck({ issuer }: { issuer: string }) {
  const check = useChange(checkSignInIssuer, { shows_errors: true })
  const found = check.data
  return (
    <div className="flex flex-col items-start gap-2">
      <Button disabled={issuer === ''} is_busy={check.isPending} onClick={() => check.mutate({ body: { issuer } })}>
        Check the issuer
      </Button>
      {check.error === null ? null : <Failure error={check.error} />}
      {found === undefined ? null : (
        <Notice tone={found.is_ok ? 'good' : 'bad'}>
          {found.problem ??
            `The issuer answers, with ${plural(found.key_count ?? 0, 'key')}. Sign-out at the provider: ${found.has_sign_out === true ? 'yes' : 'no'}. Back-channel logout: ${found.has_backchannel_logout === true ? 'yes' : 'not announced'}.`}
        </Notice>
      )}
    </div>
  )
}

function textsOf(provider: SignInProvider): Texts {
  const { name, title, issuer, client_id, groups_claim = '', scopes, rules, admin_values, session_hours } = provider
  return {
    ...{ name, title, issuer, client_id, groups_claim, client_secret: '' },
    scopes: (scopes ?? []).join(' '),
    rules: (rules ?? []).map(({ value, group_id, role }) => `${value} ${group_id} ${role}`).join('\n'),
    admin_values: (admin_values ?? []).join(', '),
    session_hours: String(session_hours ?? ''),
  }
}

function bodyOf(texts: Texts): Body {
  const words = (text: string, separator: RegExp): string[] =>
    text
      .split(separator)
      .map((word) => word.trim())
      .filter((word) => word !== '')
  const hours = Number.parseInt(texts.session_hours, 10)
  return {
    title: texts.title.trim(),
    issuer: texts.issuer.trim(),
    client_id: texts.client_id.trim(),
    scopes: words(texts.scopes, /[\s,]+/),
    admin_values: words(texts.admin_values, /,/),
    ...(texts.client_secret === '' ? {} : { client_secret: texts.client_secret.trim() }),
    ...(texts.groups_claim.trim() === '' ? {} : { groups_claim: texts.groups_claim.trim() }),
    ...(Number.isNaN(hours) ? {} : { session_hours: hours }),
  }
}

/** Null: a line is not a rule. A value may contain spaces, so the line is read from its end. */
function rulesOf(text: string): Rule[] | null {
  const rules: Rule[] = []
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue
    const words = line.split(/\s+/)
    const [group_id, role] = words.slice(-2)
    const value = words.slice(0, -2).join(' ')
    if (value === '' || group_id === undefined || (role !== 'developer' && role !== 'viewer')) return null
    rules.push({ value, group_id, role })
  }
  return rules
}
