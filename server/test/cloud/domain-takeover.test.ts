// Nobody gets a domain that is not theirs: not one that its owner has given up while its records still lead here, not one
// below or above somebody else's, and not one that only a wildcard answers for.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createGame, deleteGame, deleteGameNamespace, getGameById } from '@musterhost/contract'
import { ACTIVE_WITHOUT_PROOF_MS_MAX } from '../../src/cloud/domains/check.ts'
import { sweep } from '../../src/cloud/sweep/sweep.ts'
import { connect } from '../../src/database/connect.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../matchmaker/writers.ts'
import { createDatabase } from '../support/database.ts'
import type { Platform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ask, createDomainSteps, HERE, start } from './domain-steps.ts'
import { newGame, refused, type TestGame } from './steps.ts'

const DAY_MS = 24 * 3_600_000
const QUARANTINE_MS = 30 * DAY_MS

/** The namespace whose site is served under the host, null where none is. */
async function servedUnder(platform: Platform, host: string): Promise<string | null> {
  const { status, body } = await ask(platform, host, '/.well-known/muster.json')
  return status === 200 ? (JSON.parse(body) as { namespace_id: string }).namespace_id : null
}

/** Another game of the same group. */
async function newGameOf({ client }: Platform, { group_id }: TestGame): Promise<TestGame> {
  const { game_id } = await client.call(createGame, { body: { display_name: 'Game', developer_group_id: group_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })
  const prod_id = game.namespaces.find(({ name_id }) => name_id === 'prod')!.namespace_id
  return { game_id, group_id, prod_id } as TestGame
}

test('a domain that was given up while its records still lead here cannot be taken over', async (t) => {
  const { platform, names } = await start(t)
  const [own, other] = [await newGame(platform), await newGame(platform)]
  const { add, addAndWait, check, prove, remove, tell, row } = createDomainSteps(platform, names)
  const domain = 'left.example.com'

  names.zones.set(domain, HERE)
  await addAndWait(own, domain)
  await prove(own, domain, 'TXT')
  await until('the owner serves it', async () => (await servedUnder(platform, domain)) === own.prod_id)
  // Made before the release: nothing keeps anybody from asking for a domain.
  const waiting = await newGame(platform)
  await platform.ctx.db
    .insertInto('domains')
    .values({
      ...{
        domain_id: randomUUID(),
        namespace_id: waiting.prod_id,
        domain,
        txt_value: 'waiting',
        cname_label: 'claim-0',
      },
      ...{ verification_status: 'pending', verification_errors: '[]' },
    })
    .execute()
  await remove(own, domain)

  await t.test(
    'the error for another tenant says until when it is reserved, and that tenant is not served',
    async () => {
      const refusal = await refused('CLOUD_HOSTNAME_TAKEN', add(other, domain))
      const { quarantine_end_ts } = refusal.metadata as { quarantine_end_ts: string }
      const days = (Date.parse(quarantine_end_ts) - platform.ctx.now()) / DAY_MS
      assert.ok(days > 29.9 && days <= 30, quarantine_end_ts)
      assert.match(refusal.message, /reserved for it until \d{4}-/)
      assert.equal(await servedUnder(platform, domain), null)
    },
  )

  await t.test('a claim that was made before, and is proven now, waits for the end of the quarantine', async () => {
    names.zones.set(`_muster.${domain}`, { TXT: ['waiting'] })
    await check(waiting, domain)
    const { verification_status, verification_errors } = await tell(waiting, domain)
    assert.equal(verification_status, 'pending')
    assert.match(verification_errors.join(), /reserved for it until/)
    assert.equal(await servedUnder(platform, domain), null)
  })

  await t.test('the group that had it may have it back, in any game of its own', async () => {
    const again = await newGameOf(platform, own)
    await addAndWait(again, domain)
    await prove(again, domain, 'TXT')
    assert.equal((await tell(again, domain)).verification_status, 'active')
    await until('it is served again', async () => (await servedUnder(platform, domain)) === again.prod_id)
    await remove(again, domain)
    await refused('CLOUD_HOSTNAME_TAKEN', add(other, domain))
  })

  await t.test('after the quarantine an address that leads here still proves nothing, and a record does', async () => {
    platform.advance(QUARANTINE_MS + 1_000)
    names.zones.delete(`_muster.${domain}`)
    await addAndWait(other, domain)
    assert.equal((await tell(other, domain)).verification_status, 'pending')
    assert.equal(await servedUnder(platform, domain), null)
    await prove(other, domain, 'TXT')
    assert.equal((await row(other, domain)).verification_status, 'active')
    await until('the new owner serves it', async () => (await servedUnder(platform, domain)) === other.prod_id)
  })
})

test('deleting a namespace or a game puts its active domains in quarantine, and nothing else does', async (t) => {
  const { platform, names } = await start(t)
  const { client, ctx } = platform
  const [own, other] = [await newGame(platform), await newGame(platform)]
  const { add, addAndWait, prove, remove } = createDomainSteps(platform, names)
  const staging = { ...own, prod_id: own.staging_id }
  for (const [game, domain] of [
    [own, 'game.example.com'],
    [staging, 'namespace.example.com'],
  ] as const) {
    await addAndWait(game, domain)
    await prove(game, domain, 'TXT')
  }
  await addAndWait(own, 'pending.example.com')
  await add(own, 'removed.example.com')
  await remove(own, 'removed.example.com')
  await client.call(deleteGameNamespace, { params: { game_id: own.game_id, namespace_id: own.staging_id } })
  await client.call(deleteGame, { params: { game_id: own.game_id } })
  await refused('CLOUD_HOSTNAME_TAKEN', add(other, 'game.example.com'))
  await refused('CLOUD_HOSTNAME_TAKEN', add(other, 'namespace.example.com'))
  await add(other, 'pending.example.com')
  await add(other, 'removed.example.com')

  const kept = () => ctx.db.selectFrom('released_domains').select('domain').orderBy('domain').execute()
  await sweep(ctx)
  assert.equal((await kept()).length, 2)
  platform.advance(QUARANTINE_MS + 1_000)
  await sweep(ctx)
  assert.deepEqual(await kept(), [])
})

test('MUSTER_DOMAIN_QUARANTINE_DAYS says how long a domain is reserved, and 0 reserves none', async (t) => {
  const { platform, names } = await start(t, { env: { MUSTER_DOMAIN_QUARANTINE_DAYS: '0' } })
  const [own, other] = [await newGame(platform), await newGame(platform)]
  const { addAndWait, prove, remove, tell } = createDomainSteps(platform, names)
  await addAndWait(own, 'free.example.com')
  await prove(own, 'free.example.com', 'CNAME')
  await remove(own, 'free.example.com')
  await addAndWait(other, 'free.example.com')
  assert.match((await tell(other, 'free.example.com')).verification_errors[0]!, /of another claim/)
  await prove(other, 'free.example.com', 'CNAME')
  assert.equal((await tell(other, 'free.example.com')).verification_status, 'active')
})

test('above or below an active domain of another tenant only the TXT record is a proof', async (t) => {
  const { platform, names } = await start(t)
  const [own, other] = [await newGame(platform), await newGame(platform)]
  const sister = await newGameOf(platform, own)
  const { addAndWait, check, prove, row, tell } = createDomainSteps(platform, names)
  const status = async (game: TestGame, domain: string) => (await tell(game, domain)).verification_status
  await addAndWait(own, 'mid.play.example.com')
  await prove(own, 'mid.play.example.com', 'CNAME')
  await addAndWait(sister, 'deep.mid.play.example.com')
  await prove(sister, 'deep.mid.play.example.com', 'CNAME')
  assert.equal(await status(sister, 'deep.mid.play.example.com'), 'active', 'a relative of the same group')

  for (const domain of ['play.example.com', 'a.b.mid.play.example.com']) {
    await addAndWait(other, domain)
    const { verification_records } = await tell(other, domain)
    assert.deepEqual(
      verification_records.map(({ type, name }) => [type, name]),
      [['TXT', `_muster.${domain}`]],
    )
    const { cname_label } = await row(other, domain)
    names.zones.set(domain, { CNAME: `${cname_label}.cdn.localhost`, ...HERE })
    await check(other, domain)
    const told = await tell(other, domain)
    assert.equal(told.verification_status, 'pending', domain)
    assert.match(told.verification_errors[0]!, /above or below .*only the TXT record/)
    await prove(other, domain, 'TXT')
    assert.equal(await status(other, domain), 'active')
  }

  // Names that only look related need no more than any other.
  for (const domain of ['xmid.play.example.com', 'mid-play.example.com']) {
    await addAndWait(other, domain)
    assert.equal((await tell(other, domain)).verification_records.length, 2, domain)
    await prove(other, domain, 'CNAME')
    assert.equal(await status(other, domain), 'active', domain)
  }
  // What was active before the others came stays so by its own proof.
  await check(own, 'mid.play.example.com')
  assert.equal(await status(own, 'mid.play.example.com'), 'active')
})

test('of a parent and a child that are proven at the same moment by CNAME, one waits', async (t) => {
  const { platform, names } = await start(t)
  const [own, other] = [await newGame(platform), await newGame(platform)]
  const { addAndWait, check, row, tell } = createDomainSteps(platform, names)
  const [parent, child] = ['up.example.com', 'down.up.example.com']
  await addAndWait(own, parent)
  await addAndWait(other, child)
  names.zones.set(parent, { CNAME: `${(await row(own, parent)).cname_label}.cdn.localhost` })
  names.zones.set(child, { CNAME: `${(await row(other, child)).cname_label}.cdn.localhost` })
  await Promise.all([check(own, parent), check(other, child)])
  const both = [(await tell(own, parent)).verification_status, (await tell(other, child)).verification_status]
  assert.deepEqual(both.sort(), ['active', 'pending'])
})

test('a record that comes from a wildcard proves nothing', async (t) => {
  const { platform, names } = await start(t)
  const game = await newGame(platform)
  const { addAndWait, check, row, tell } = createDomainSteps(platform, names)
  const claimOf = async (domain: string) => {
    await addAndWait(game, domain)
    const { cname_label, txt_value } = await row(game, domain)
    return { target: `${cname_label}.cdn.localhost`, txt_value }
  }
  const stays = async (domain: string, line: RegExp) => {
    await check(game, domain)
    const { verification_status, verification_errors } = await tell(game, domain)
    assert.equal(verification_status, 'pending', domain)
    assert.match(verification_errors.join('\n'), line)
  }

  const right = await claimOf('play.right.com')
  names.zones.set('*.right.com', { CNAME: right.target, ...HERE })
  await stays('play.right.com', /CNAME record of play\.right\.com comes from a wildcard/)

  // The closest name that is there is two labels above.
  const far = await claimOf('a.b.far.com')
  names.zones.set('far.com', HERE)
  names.zones.set('*.far.com', { CNAME: far.target, ...HERE })
  await stays('a.b.far.com', /CNAME record of a\.b\.far\.com comes from a wildcard/)

  const above = await claimOf('text.com')
  names.zones.set('text.com', HERE)
  names.zones.set('*.text.com', { TXT: [above.txt_value, 'v=spf1 -all'] })
  await stays('text.com', /TXT record of _muster\.text\.com comes from a wildcard/)

  // A wildcard alias into a zone of a stranger, whose name server may answer each question differently.
  const alias = await claimOf('alias.com')
  names.zones.set('alias.com', HERE)
  names.zones.set('*.alias.com', (asked) => ({
    CNAME: 'web.stranger.example',
    TXT: asked === 1 ? [alias.txt_value] : [],
  }))
  await stays('alias.com', /_muster\.alias\.com is a CNAME record to web\.stranger\.example/)

  // That nobody can tell whether it is a wildcard is no proof either.
  const broken = await claimOf('play.broken.com')
  names.zones.set('play.broken.com', { CNAME: broken.target })
  names.zones.set('broken.com', HERE)
  names.zones.set('*.broken.com', 'SERVFAIL')
  await stays('play.broken.com', /SERVFAIL/)

  // Beside wildcards that say something else, a record of its own counts.
  const beside = await claimOf('play.beside.com')
  names.zones.set('*.beside.com', { CNAME: 'other.example', TXT: ['other'] })
  names.zones.set('play.beside.com', { CNAME: beside.target, ...HERE })
  await check(game, 'play.beside.com')
  assert.equal((await tell(game, 'play.beside.com')).verification_status, 'active')
  const texts = await claimOf('texts.com')
  names.zones.set('*.texts.com', { TXT: ['other'] })
  names.zones.set('_muster.texts.com', { TXT: ['x', [texts.txt_value.slice(0, 9), texts.txt_value.slice(9)]] })
  await check(game, 'texts.com')
  assert.equal((await tell(game, 'texts.com')).verification_status, 'active')
})

test('a domain that an older platform had verified stays active, until another tenant proves it by DNS', async (t) => {
  const database_url = await createDatabase(t)
  const old = await openDatabase(t, database_url)
  await old.query('drop schema public cascade; create schema public')
  const { db, close } = connect({ url: database_url, application_name: 'migration' })
  await migrate(db)
  const ids = { group_id: randomUUID(), game_id: randomUUID(), version_id: randomUUID(), prod_id: randomUUID() }
  const run = (text: string, ...values: string[]) => old.query(text, values)
  await run(`insert into groups (group_id, display_name) values ($1, 'Old')`, ids.group_id)
  await run(
    `insert into games (game_id, developer_group_id, name_id, display_name) values ($1, $2, 'old', 'Old')`,
    ids.game_id,
    ids.group_id,
  )
  await run(
    `insert into versions (version_id, game_id, display_name, config) values ($1, $2, '1', '{}')`,
    ids.version_id,
    ids.game_id,
  )
  await run(
    `insert into namespaces (namespace_id, game_id, name_id, display_name, version_id) values ($1, $2, 'prod', 'P', $3)`,
    ids.prod_id,
    ids.game_id,
    ids.version_id,
  )
  for (const domain of ['old.example.com', 'sold.example.com']) {
    await run(
      `insert into domains (domain_id, namespace_id, domain, verification_status, txt_value, cname_label, verify_ts, proof)
      values ($1, $2, $3, 'active', 'n', $4, now(), 'http')`,
      randomUUID(),
      ids.prod_id,
      domain,
      `claim-${domain}`,
    )
  }
  await close()

  const { platform, names } = await start(t, { database_url })
  const own = ids as unknown as TestGame
  const other = await newGame(platform)
  const { add, addAndWait, check, prove, remove, tell } = createDomainSteps(platform, names)
  names.zones.set('old.example.com', HERE)
  names.zones.set('sold.example.com', HERE)
  for (const domain of ['old.example.com', 'sold.example.com']) {
    platform.advance(2 * ACTIVE_WITHOUT_PROOF_MS_MAX)
    await check(own, domain)
    const told = await tell(own, domain)
    assert.equal(told.verification_status, 'active')
    assert.equal(told.verification_errors.length, 2, 'it says which records are missing')
    assert.equal(await servedUnder(platform, domain), own.prod_id)
  }

  await addAndWait(other, 'sold.example.com')
  assert.equal((await tell(other, 'sold.example.com')).verification_status, 'pending')
  await prove(other, 'sold.example.com', 'TXT')
  assert.equal((await tell(other, 'sold.example.com')).verification_status, 'active')
  const lost = await tell(own, 'sold.example.com')
  assert.equal(lost.verification_status, 'failed')
  assert.match(lost.verification_errors[0]!, /proven by DNS/)
  await until('the new owner serves it', async () => {
    return (await servedUnder(platform, 'sold.example.com')) === other.prod_id
  })

  // From its first proof on it is a domain like any other.
  await prove(own, 'old.example.com', 'TXT')
  await refused('CLOUD_HOSTNAME_TAKEN', add(other, 'old.example.com'))
  await remove(own, 'old.example.com')
  await refused('CLOUD_HOSTNAME_TAKEN', add(other, 'old.example.com'))
})
