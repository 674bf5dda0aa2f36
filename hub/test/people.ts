// People with roles in a group, signed in as the hub signs them in.
import { consumeGroupInvite, createGroupInvite } from '@musterhost/contract'
import type { MailServer } from '../../server/test/identity/mail-server.ts'
import { logIn, type Person } from '../../server/test/identity/people.ts'
import type { Platform } from '../../server/test/support/platform.ts'

/** A person who has joined the group by an invite. */
export async function joined(
  platform: Platform,
  mail: MailServer,
  { group_id, role, email }: { group_id: string; role: 'developer' | 'viewer'; email: string },
): Promise<Person> {
  const person = await logIn(platform, mail, email)
  const { code } = await platform.client.call(createGroupInvite, { params: { group_id }, body: { role } })
  await person.client.call(consumeGroupInvite, { params: { group_invite_code: code } })
  return person
}
