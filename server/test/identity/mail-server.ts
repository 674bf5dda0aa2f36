// A mail server that accepts every mail and passes it to the test, over a real socket. It implements the part of SMTP (RFC
// 5321) that a client without TLS and authentication needs.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export type Letter = { from: string; to: string; text: string }

export type MailServer = {
  url: string
  letters: Letter[]
  /** While true, mail is refused. */
  refuses: boolean
  /** While true, it does not respond to deliveries. */
  is_silent: boolean
  /** Deliveries without a response. */
  waiting: number
  hangUp: () => void
}

const LINE_LENGTH_MAX = 100_000

export async function startMailServer(t: TestContext): Promise<MailServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    serve(socket, mail)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const mail: MailServer = {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    letters: [],
    refuses: false,
    is_silent: false,
    waiting: 0,
    hangUp() {
      for (const socket of sockets) socket.destroy()
    },
  }
  t.after(() => {
    server.close()
    mail.hangUp()
  })
  return mail
}

function serve(socket: Socket, mail: MailServer): void {
  let received = ''
  let letter: Letter = { from: '', to: '', text: '' }
  let in_text = false
  socket.setEncoding('utf8')
  socket.write('220 test ESMTP\r\n')
  const answer = (line: string): void => {
    if (in_text) {
      if (line !== '.') {
        letter.text += `${line}\n`
        return
      }
      in_text = false
      mail.letters.push(letter)
      letter = { from: '', to: '', text: '' }
      socket.write('250 taken\r\n')
      return
    }
    const command = line.slice(0, 4).toUpperCase()
    if (command === 'MAIL') letter.from = line
    if (command === 'RCPT') letter.to = /<(.*)>/.exec(line)?.[1] ?? ''
    if (command === 'RCPT' && mail.refuses) {
      socket.write('550 no\r\n')
      return
    }
    if (command === 'EHLO') {
      socket.write('250-hello\r\n250 AUTH PLAIN\r\n')
      return
    }
    if (command === 'AUTH') {
      // Some clients repeat the command.
      socket.write(mail.refuses ? `535 who is ${line}?\r\n` : '235 welcome\r\n')
      return
    }
    if (command === 'DATA') {
      if (mail.is_silent) {
        mail.waiting++
        return
      }
      in_text = true
      socket.write('354 go on\r\n')
      return
    }
    if (command === 'QUIT') {
      socket.end('221 bye\r\n')
      return
    }
    socket.write('250 ok\r\n')
  }
  socket.on('data', (chunk: string) => {
    received += chunk
    for (let end = received.indexOf('\r\n'); end !== -1; end = received.indexOf('\r\n')) {
      answer(received.slice(0, end))
      received = received.slice(end + 2)
    }
    if (received.length > LINE_LENGTH_MAX) socket.destroy()
  })
}
