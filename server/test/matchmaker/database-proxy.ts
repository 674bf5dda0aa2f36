// A proxy between a writer and its database, on a unix socket, that loses what the database answers.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

export type DatabaseProxy = {
  /** The database's url, by way of the proxy. */
  url: string
  /** From now on nothing that the database says on the connections that are open arrives. */
  loseAnswers: () => void
  /** Cuts all connections that are open. New ones work. */
  cut: () => void
  /** The database is not there, or is there again. */
  setAway: (is_away: boolean) => void
}

export async function openDatabaseProxy(t: Pick<TestContext, 'after'>, url: string): Promise<DatabaseProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-proxy-'))
  // It names a socket and no host, which a URL in the strict sense must.
  const [address, query] = url.split('?') as [string, string]
  const parameters = new URLSearchParams(query)
  const socket_name = `.s.PGSQL.${parameters.get('port')}`
  const target = join(parameters.get('host')!, socket_name)
  const pairs = new Set<{ client: Socket; database: Socket; loses: boolean }>()
  let is_away = false
  const server = createServer((client) => {
    if (is_away) return client.destroy()
    const pair = { client, database: connect(target), loses: false }
    pairs.add(pair)
    const end = (): void => {
      client.destroy()
      pair.database.destroy()
      pairs.delete(pair)
    }
    for (const socket of [client, pair.database]) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => pair.database.write(bytes))
    pair.database.on('data', (bytes) => {
      if (!pair.loses) client.write(bytes)
    })
  })
  server.listen(join(folder, socket_name))
  await once(server, 'listening')
  const cut = (): void => {
    for (const pair of pairs) {
      pair.client.destroy()
      pair.database.destroy()
    }
  }
  t.after(async () => {
    server.close()
    cut()
    await rm(folder, { recursive: true, force: true })
  })
  parameters.set('host', folder)
  return {
    url: `${address}?${parameters}`,
    loseAnswers() {
      for (const pair of pairs) pair.loses = true
    },
    cut,
    setAway(wish) {
      is_away = wish
      if (is_away) cut()
    },
  }
}
