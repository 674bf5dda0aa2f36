// The platform behind Debian's pgbouncer, with the settings of docs/postgres.md.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createGroup, listGroups } from '@musterhost/contract'
import pg from 'pg'
import { lacking } from '../run/optional-programs.ts'
import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { startPlatform } from '../support/platform.ts'
import { endWithTest, outputOf } from '../support/programs.ts'
import { until } from '../support/until.ts'

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'postgres.md')
const skip = lacking('pgbouncer') ?? false

for (const listens of ['through the pooler', 'at an address of its own'] as const) {
  test(`the platform works behind pgbouncer with session pooling, and listens ${listens}`, { skip }, async (t) => {
    const direct = await createDatabase(t)
    const pooled = await startPgbouncer(t, direct)
    const env: Record<string, string> = listens === 'through the pooler' ? {} : { MUSTER_DATABASE_LISTEN_URL: direct }
    const platform = await startPlatform(t, { database_url: pooled, env })
    await platform.client.call(createGroup, { body: { display_name: 'Behind a pooler' } })
    assert.equal((await platform.client.call(listGroups, {})).groups.length, 1)

    const { pool, listener } = platform.ctx
    // A named statement is known to one server connection only.
    const named = { name: 'doubled', text: 'select 2 * $1::integer as n' }
    const results = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.query({ ...named, values: [n] })))
    assert.deepEqual(
      results.map(({ rows }) => rows[0].n),
      Array.from({ length: 40 }, (_, n) => 2 * n),
    )

    const heard: string[] = []
    t.after(listener.on('poolers', (payload) => void heard.push(payload)))
    await until('listening', () => heard.length === 1)
    await pool.query("select pg_notify('poolers', 'hello')")
    await until('the notification', () => heard.includes('hello'))
  })
}

/** Returns the address of the database by way of the pooler. */
async function startPgbouncer(t: TestContext, direct: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-pgbouncer-'))
  chmodSync(folder, 0o755)
  const [port] = await freePorts(1)
  const { user, password, database, host, port: direct_port } = new pg.Client({ connectionString: direct })
  const ini = /```ini\n([^`]*)```/.exec(readFileSync(PAGE, 'utf8'))![1]!
  const target = `${database} = host=${host} port=${direct_port} dbname=${database} user=${user} password=${password}`
  const own = `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\n`
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, ini.replace(/^muster = .*$/m, target).replace('[pgbouncer]\n', `[pgbouncer]\n${own}`))
  // It does not run as root, and the socket of the database is that of its user.
  const command = process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
  const [program, ...args] = [...command, 'pgbouncer', file]
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = outputOf(child)
  endWithTest(t, child, folder)
  await until('pgbouncer to listen', () => {
    if (child.exitCode !== null) throw new Error(output())
    return output().includes('process up')
  })
  return `postgres://${user}@127.0.0.1:${port}/${database}`
}
