// Mail that goes out, by the operator's own SMTP server. One connection a mail, a few at a time; the others wait their turn
// for a while. Mails that are under way or wait are shared among the clients that asked for them (addresses/client-share.ts), so a
// slow mail server holds up nobody but those who wait for mail, and a few clients do not keep another from its mail.
import { ClientShare } from './addresses/client-share.ts'

export type Mail = { to: string; subject: string; text: string }

export type Mailer = {
  /** `sent` when the server has taken the mail, `busy` when too many are under way; throws what failed. */
  send: (mail: Mail, client_key: string) => Promise<'sent' | 'busy'>
}

const MAILS_AT_ONCE_MAX = 8
/** Under way and waiting; of one client. */
const MAILS_MAX = 256
const CLIENT_MAILS_MAX = 8
const WAIT_MS_MAX = 10_000
const CONNECT_MS_MAX = 5_000
const SILENCE_MS_MAX = 10_000

/** `url`: smtp://user:password@host:port, or smtps://. STARTTLS is used where the server has it. */
export function createMailer({ url, from }: { url: string; from: string }): Mailer {
  const share = new ClientShare({ places_max: MAILS_MAX, client_max: CLIENT_MAILS_MAX })
  /** Those that wait for their turn, in the order in which they came. */
  const waiting = new Set<() => void>()
  let under_way = 0

  /** Whether it is the mail's turn; false: it was given up meanwhile. */
  async function turn(given_up: AbortSignal): Promise<boolean> {
    if (under_way >= MAILS_AT_ONCE_MAX) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add(resolve)
      given_up.addEventListener('abort', () => resolve())
      await promise
      // Its turn came: the place of the mail before it is its own.
      if (waiting.delete(resolve)) return false
      return true
    }
    under_way++
    return true
  }

  function next(): void {
    const [wake] = waiting
    if (wake === undefined) {
      under_way--
      return
    }
    waiting.delete(wake)
    wake()
  }

  return {
    async send(mail, client_key) {
      const displaced = new AbortController()
      const place = share.enter(client_key, () => displaced.abort())
      if (typeof place === 'string') return 'busy'
      try {
        if (!(await turn(AbortSignal.any([displaced.signal, AbortSignal.timeout(WAIT_MS_MAX)])))) return 'busy'
        try {
          await deliver({ url, from }, mail)
          return 'sent'
        } finally {
          next()
        }
      } finally {
        place.leave()
      }
    },
  }
}

async function deliver({ url, from }: { url: string; from: string }, mail: Mail): Promise<void> {
  // Loaded when it is needed: only the api role sends mail.
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    url,
    connectionTimeout: CONNECT_MS_MAX,
    greetingTimeout: CONNECT_MS_MAX,
    socketTimeout: SILENCE_MS_MAX,
  })
  // Texts only: nothing in a mail may ever be read from a file or an address.
  await transport.sendMail({ ...mail, from, disableFileAccess: true, disableUrlAccess: true })
}
