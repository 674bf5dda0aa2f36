// The tokens of one kind: a list, what creates a token, and the revocation of each.
import type { listGameCloudTokens, Operation, ResponseOf } from '@musterhost/contract'
import { type ReactNode, useState } from 'react'
import type { Input } from '../../api/call.ts'
import type { Described } from '../../api/describe.ts'
import { useEntries } from '../../api/queries.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { ShortId } from '../../parts/copy.tsx'
import { type Column, DataTable, type PagedRead, PagesEnd } from '../../parts/data-table.tsx'
import { Badge, Pending, type Read } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { Ago, useNow } from '../../parts/time.tsx'

type TokenList = ResponseOf<typeof listGameCloudTokens>
type Token = TokenList['tokens'][number]
type TokenPages = Read & PagedRead & { data: { pages: TokenList[] } | undefined }
type Kind = 'cloud' | 'public' | 'development'

/** Tokens of one page of a list. */
const TOKENS_PAGE = 100

/** The query of the first page. */
export const FIRST_TOKENS = { limit: TOKENS_PAGE }

/** The query of the page after a response; null after the last one. */
export function nextTokens({ tokens, is_cut }: TokenList): { limit: number; before_token_id: string } | null {
  const last = tokens.at(-1)
  return is_cut && last !== undefined ? { ...FIRST_TOKENS, before_token_id: last.token_id } : null
}

/** `effect`: what the revocation of a token changes, as a sentence. `muster`: options of the command besides the token. */
type Revocation<O extends Operation> = {
  operation: Described<O>
  inputOf: (token_id: string) => Input<O>
  effect: string
  muster: string
}

type Props<O extends Operation> = {
  kind: Kind
  title: string
  lead: string
  read: TokenPages
  revocation: Revocation<O>
  actions: ReactNode
}

export function TokenSection<O extends Operation>({ kind, title, lead, read, revocation, actions }: Props<O>) {
  const [revoked, setRevoked] = useState<Token | null>(null)
  const tokens = useEntries(read.data?.pages, (page) => page.tokens)
  return (
    <Section title={title} lead={lead} actions={actions}>
      <Pending read={read} />
      <TokenTable kind={kind} tokens={tokens} onRevoke={setRevoked} />
      <PagesEnd read={read} shown={tokens.length} one="token" />
      {revoked === null ? null : (
        <RevokeDialog token_id={revoked.token_id} revocation={revocation} onClose={() => setRevoked(null)} />
      )}
    </Section>
  )
}

const LAST_USED: Column<Token> = {
  id: 'used',
  is_secondary: true,
  title: 'Last used',
  cell: ({ use_ts }) => (use_ts === undefined ? <span className="text-soft">never</span> : <Ago ts={use_ts} />),
}

type TokenTableProps = { kind: Kind; tokens: readonly Token[]; onRevoke: (token: Token) => void }

function TokenTable({ kind, tokens, onRevoke }: TokenTableProps) {
  const columns: Column<Token>[] = [
    { id: 'id', title: 'Id', cell: ({ token_id }) => <ShortId id={token_id} />, width: 10 },
    { id: 'name', title: 'Name', cell: ({ name }) => name ?? <span className="text-soft">none</span> },
    {
      id: 'by',
      is_secondary: true,
      title: 'Created by',
      cell: ({ created_by }) => created_by?.name ?? created_by?.kind ?? '',
    },
    {
      id: 'created',
      is_secondary: true,
      title: 'Created',
      cell: ({ create_ts }) => <Ago ts={create_ts} />,
      width: 12,
    },
    ...(kind === 'cloud' ? [LAST_USED] : []),
    { id: 'state', title: 'State', cell: (token) => <State token={token} /> },
    {
      id: 'revoke',
      title: 'Actions',
      width: 8,
      cell: (token) =>
        token.revoke_ts === undefined ? (
          <Button
            kind="quiet_danger"
            onClick={() => onRevoke(token)}
            aria-label={`Revoke the ${kind} token ${token.token_id}`}
          >
            Revoke
          </Button>
        ) : null,
    },
  ]
  return (
    <DataTable
      label={`${kind} tokens`}
      rows={tokens}
      rowId={(token) => token.token_id}
      columns={columns}
      empty={`There is no ${kind} token.`}
    />
  )
}

function State({ token: { revoke_ts, expire_ts } }: { token: Token }) {
  const now = useNow()
  if (revoke_ts !== undefined) return <Badge tone="bad">revoked</Badge>
  if (expire_ts === undefined) return <Badge tone="good">valid</Badge>
  if (Date.parse(expire_ts) < now) return <Badge>expired</Badge>
  return (
    <>
      <Badge tone="good">valid</Badge> expires <Ago ts={expire_ts} />
    </>
  )
}

type RevokeProps<O extends Operation> = { token_id: string; revocation: Revocation<O>; onClose: () => void }

function RevokeDialog<O extends Operation>({ token_id, revocation, onClose }: RevokeProps<O>) {
  const { operation, inputOf, effect, muster } = revocation
  return (
    <ActionDialog
      operation={operation}
      input={inputOf(token_id)}
      words={{ title: 'Revoke the token', submit: 'Revoke', done: 'The token is revoked.', is_danger: true }}
      muster={`tokens revoke ${token_id} ${muster}`}
      onClose={onClose}
    >
      <p>{effect} This cannot be undone.</p>
    </ActionDialog>
  )
}
