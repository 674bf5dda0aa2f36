// Mail that goes out, by the operator's own SMTP server. One connection a mail, a few at a time: who comes when all are
// taken is told to come again, so that a slow mail server holds up nobody but those who wait for mail.
export type Mail = { to: string; subject: string; text: string }

export type Mailer = {
  /** `sent` when the server has taken the mail, `busy` when too many are under way; throws what failed. */
  send: (mail: Mail) => Promise<'sent' | 'busy'>
}

const MAILS_AT_ONCE_MAX = 8
const CONNECT_MS_MAX = 5_000
const SILENCE_MS_MAX = 10_000

/** `url`: smtp://user:password@host:port, or smtps://. STARTTLS is used where the server has it. */
export function createMailer({ url, from }: { url: string; from: string }): Mailer {
  let under_way = 0
  return {
    async send(mail) {
      if (under_way >= MAILS_AT_ONCE_MAX) return 'busy'
      under_way++
      try {
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
        return 'sent'
      } finally {
        under_way--
      }
    },
  }
}
