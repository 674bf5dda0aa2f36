// Invitations of machines to join a platform.
import {
  type BodyOf,
  createNodeInvitation,
  listNodeInvitations,
  NODE_INVITATION_TTL_MS_DEFAULT,
  revokeNodeInvitation,
} from '@musterhost/contract'
import { isLocal } from '../local-url.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'

export type NodeRole = NonNullable<BodyOf<typeof createNodeInvitation>['roles']>[number]
export type InviteOptions = GlobalOptions & { name?: string; region?: string; roles?: NodeRole[]; ttl?: number }

export async function inviteNode(terminal: Terminal, options: InviteOptions): Promise<void> {
  const { name, region, roles, ttl = NODE_INVITATION_TTL_MS_DEFAULT } = options
  const { client, url } = await openSession(terminal, options)
  const body = {
    ttl,
    ...(name !== undefined && { name }),
    ...(region !== undefined && { region }),
    ...(roles && { roles }),
  }
  const invited = await client.call(createNodeInvitation, { body })
  if (terminal.is_json) return terminal.json(invited)
  terminal.note(`Inviting a machine to ${url}`)
  terminal.note('On the new machine (Linux), with the same version of Muster:')
  terminal.print(invited.join_command)
  if (isLocal(invited.platform_url)) {
    terminal.note(
      'Another machine does not reach localhost. Set MUSTER_DOMAIN_MAIN of the platform to its domain for that.',
    )
  }
  terminal.note(
    `Good once, for the node "${invited.node_id}" in region ${invited.region}, until ${invited.expire_ts.slice(11, 16)} UTC.`,
  )
}

export async function listInvitations(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const { client, url } = await openSession(terminal, options)
  const response = await client.call(listNodeInvitations, {})
  if (terminal.is_json) return terminal.json(response)
  terminal.note(`Invitations of ${url}`)
  printTable(
    terminal,
    response.invitations,
    [
      { title: 'INVITATION', text: ({ invitation_id }) => invitation_id, is_whole: true },
      { title: 'NODE', text: ({ node_id }) => node_id },
      { title: 'REGION', text: ({ region }) => region },
      { title: 'STATE', text: ({ state }) => state },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
    ],
    'There is no invitation. Create one: muster nodes invite',
  )
}

export async function revokeInvitation(
  terminal: Terminal,
  invitation_id: string,
  options: GlobalOptions,
): Promise<void> {
  const { client } = await openSession(terminal, options)
  await client.call(revokeNodeInvitation, { params: { invitation_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Revoked the invitation ${invitation_id}.`)
}
