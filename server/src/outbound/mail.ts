// Sends mail through the operator's SMTP server: one connection for each mail, a few at once, the rest in a queue. Clients
// share the slots in that queue (addresses/client-share.ts). So a slow mail server delays only callers that wait for mail,
// and a few clients cannot keep others from their mail.
import type { Transporter } from 'nodemailer'
import { Semaphore } from '../flow/semaphore.ts'

export type Mail = { to: string; subject: string; text: string }

/** The slots of all mails that are being sent or wait for their turn (addresses/client-share.ts). A string: why there is none. */
export type MailShare = { enter: (client_key: string, displace: () => void) => { leave: () => void } | string }

export type Mailer = {
  /** `sent` when the server has taken the mail, `busy` when too many are under way; throws what failed. */
  send: (mail: Mail, client_key: string) => Promise<'sent' | 'busy'>
}

/** Mails that are being sent at once. */
const MAILS_AT_ONCE_MAX = 8
/** Mails of all clients that are being sent or wait for their turn. */
export const MAILS_MAX = 256
/** Mails of one client that are being sent or wait for their turn. */
export const CLIENT_MAILS_MAX = 8
/** A mail waits this long for its turn. */
const WAIT_MS_MAX = 10_000
/** Time to connect to the mail server, and for its greeting. */
const CONNECT_MS_MAX = 5_000
/** Silence of the mail server during a mail. */
const SILENCE_MS_MAX = 10_000

/** `url`: smtp://user:password@host:port, or smtps://. STARTTLS is used where the server has it. */
export function createMailer({ url, from, share }: { url: string; from: string; share: MailShare }): Mailer {
  const turns = new Semaphore({ at_once_max: MAILS_AT_ONCE_MAX, waiting_max: MAILS_MAX })
  return {
    async send(mail, client_key) {
      const displaced = new AbortController()
      const slot = share.enter(client_key, () => displaced.abort())
      if (typeof slot === 'string') return 'busy'
      try {
        const patience = AbortSignal.any([displaced.signal, AbortSignal.timeout(WAIT_MS_MAX)])
        if ((await turns.acquire(patience)) !== 'acquired') return 'busy'
        try {
          await deliver({ url, from }, mail)
          return 'sent'
        } finally {
          turns.release()
        }
      } finally {
        slot.leave()
      }
    },
  }
}

/** Connects and logs in, and sends nothing. Throws what failed. */
export async function requireMailServer(url: string): Promise<void> {
  const transport = await openTransport(url)
  try {
    await transport.verify()
  } finally {
    transport.close()
  }
}

async function openTransport(url: string): Promise<Transporter> {
  // Loaded when it is needed: only the api role sends mail.
  const { createTransport } = await import('nodemailer')
  return createTransport({
    url,
    connectionTimeout: CONNECT_MS_MAX,
    greetingTimeout: CONNECT_MS_MAX,
    socketTimeout: SILENCE_MS_MAX,
  })
}

async function deliver({ url, from }: { url: string; from: string }, mail: Mail): Promise<void> {
  const transport = await openTransport(url)
  // Texts only: nothing in a mail may ever be read from a file or an address.
  await transport.sendMail({ ...mail, from, disableFileAccess: true, disableUrlAccess: true })
}
