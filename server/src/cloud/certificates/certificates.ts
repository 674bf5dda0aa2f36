// Certificates that hosts have requested: ordered, retried after growing pauses, and renewed before they expire. One job
// handles all of them, one after the other, and plans its own next run. Certificate authorities limit orders, so there is a
// budget. It is counted in the database: it holds for any number of hosts at once, and across restarts. With DNS-01 the
// wildcards are requested at the start, and a host that a wildcard covers needs no certificate of its own.
import { sql } from 'kysely'
import { getDomain } from 'tldts'
import { certifiedHosts, wildcardNames, wildcardOf } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { isServed } from '../../database/served-hosts.ts'
import { newId } from '../../ids.ts'
import { CERTIFICATE_KEYS } from '../../tokens/sealed-columns.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { addCertificateRun } from '../jobs.ts'
import { reportWildcards } from './wildcard-report.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** After the nth failure in a row; the last holds for all that follow. Authorities allow five failures an hour and host. */
export const ORDER_BACK_OFF_MS = [2 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS]
/** Orders of all hosts count for this long. */
export const BUDGET_MS = 3 * HOUR_MS
/** First orders below one registrable domain count for this long; renewals do not. */
export const DOMAIN_BUDGET_MS = 7 * DAY_MS
/** An order that was begun and never ended, as by a crash, is begun again after this. */
const ORDER_MS_MAX = 20 * MINUTE_MS
/** Hosts of one run. */
const HOSTS_PER_RUN_MAX = 20
/** If a wake-up is lost, a request waits at most this long. */
const RUN_MS_MAX = 10 * MINUTE_MS

/** Starts orders for the hosts that have requested a certificate, and that request one later. Returns how to end it. */
export function startOrdering(ctx: Context): () => void {
  reportWildcards(ctx, wildcardNames(ctx.config))
  if (ctx.config.acme === null) return () => {}
  const run = (): void => {
    addCertificateRun(ctx.db, ctx.now(), 'request').catch((error: unknown) =>
      ctx.log.warn({ err: error }, 'a requested certificate waits for the next run'),
    )
  }
  if (ctx.config.acme.dns !== null) {
    const names = wildcardNames(ctx.config)
    ctx.log.info({ names, by: ctx.config.acme.dns.publisher.kind }, 'wildcard certificates are ordered by DNS-01')
  }
  wishWildcards(ctx)
    .catch((error: unknown) => ctx.log.warn({ err: error }, 'wildcards wait until a host of theirs is visited'))
    .finally(run)
  return ctx.listener.on(CHANNELS.certificate_wishes, run)
}

/** A lobby's first player should not have to wait. */
async function wishWildcards(ctx: Context): Promise<void> {
  const now = new Date(ctx.now())
  const wishes = wildcardNames(ctx.config).map((host) => ({ host, wish_ts: now, next_ts: now }))
  if (wishes.length === 0) return
  await ctx.db
    .insertInto('certificates')
    .values(wishes)
    .onConflict((conflict) => conflict.column('host').doNothing())
    .execute()
}

type Due = { host: string; chain: string | null; failure_count: number }

/** Orders what is due, as far as the budget goes, and plans the next run. `signal`: the process ends. */
export async function orderCertificates(ctx: Context, signal?: AbortSignal): Promise<void> {
  if (ctx.config.acme === null) return
  let pause_until_ms: number | null = null
  for (let count = 0; count < HOSTS_PER_RUN_MAX && pause_until_ms === null && !signal?.aborted; count++) {
    const due = await ctx.db
      .selectFrom('certificates')
      .select(['host', 'chain', 'failure_count'])
      .where('next_ts', '<=', new Date(ctx.now()))
      .orderBy('next_ts')
      .orderBy('host')
      .limit(1)
      .executeTakeFirst()
    if (due === undefined) break
    pause_until_ms = await lookAfter(ctx, ctx.config.acme, due, signal)
  }
  const { next_ts } = await ctx.db
    .selectFrom('certificates')
    .select((query) => query.fn.min('next_ts').as('next_ts'))
    .executeTakeFirstOrThrow()
  const latest_ms = ctx.now() + RUN_MS_MAX
  await addCertificateRun(ctx.db, pause_until_ms ?? Math.min(next_ts?.getTime() ?? latest_ms, latest_ms), 'plan')
}

type Acme = NonNullable<Context['config']['acme']>

/** When the budget of all is used up: until when. */
async function lookAfter(ctx: Context, acme: Acme, due: Due, signal?: AbortSignal): Promise<number | null> {
  const { host } = due
  if (!(await isServed(ctx.db, certifiedHosts(ctx.config), host)) || (await isCovered(ctx, host))) {
    await ctx.db.deleteFrom('certificates').where('host', '=', host).execute()
    await ctx.listener.notify(CHANNELS.certificates, host)
    return null
  }
  const budget = await takeFromBudget(ctx, acme, due)
  if (budget.kind === 'in_hand') return null
  if (budget.kind === 'all') return budget.until_ms
  if (budget.kind === 'domain') {
    const error = 'Enough has been ordered for this domain this week.'
    await postpone(ctx, host, { until_ms: budget.until_ms, error, failure_count: due.failure_count })
    return null
  }
  try {
    // Loaded by those who order: it is large.
    const { orderCertificate } = await import('./acme.ts')
    const issued = await orderCertificate(ctx, acme, host, signal)
    const now_ms = ctx.now()
    await ctx.db
      .updateTable('certificates')
      .set({
        chain: issued.chain,
        private_key: ctx.seals.seal(CERTIFICATE_KEYS.purposeOf(host), issued.private_key, now_ms),
        expire_ts: new Date(issued.expire_ms),
        // When two thirds of its life are over.
        next_ts: new Date(now_ms + ((issued.expire_ms - now_ms) * 2) / 3),
        failure_count: 0,
        error: null,
      })
      .where('host', '=', host)
      .execute()
    await ctx.listener.notify(CHANNELS.certificates, host)
    ctx.log.info({ host, expire_ts: new Date(issued.expire_ms) }, 'a certificate was issued')
  } catch (error) {
    if (signal?.aborted) {
      // Nobody's failure: the next process orders it at once.
      await ctx.db
        .updateTable('certificates')
        .set({ next_ts: new Date(ctx.now()) })
        .where('host', '=', host)
        .execute()
      return null
    }
    ctx.log.warn({ err: error, host }, 'a certificate could not be had; it is tried again')
    const pause_ms = ORDER_BACK_OFF_MS[Math.min(due.failure_count, ORDER_BACK_OFF_MS.length - 1)]!
    await postpone(ctx, host, {
      until_ms: ctx.now() + pause_ms,
      error: error instanceof Error ? error.message : String(error),
      failure_count: due.failure_count + 1,
    })
  }
  return null
}

/** Whether a wildcard is shown for the host. */
async function isCovered(ctx: Context, host: string): Promise<boolean> {
  const wildcard = wildcardOf(host)
  if (wildcard === host || !wildcardNames(ctx.config).includes(wildcard)) return false
  const row = await ctx.db
    .selectFrom('certificates')
    .select('host')
    .where('host', '=', wildcard)
    .where('chain', 'is not', null)
    .where('expire_ts', '>', new Date(ctx.now()))
    .executeTakeFirst()
  return row !== undefined
}

type Postponement = { until_ms: number; error: string; failure_count: number }

async function postpone(ctx: Context, host: string, { until_ms, error, failure_count }: Postponement): Promise<void> {
  /** Characters of an error that are stored with the certificate. */
  const ERROR_LENGTH_MAX = 500
  await ctx.db
    .updateTable('certificates')
    .set({ next_ts: new Date(until_ms), error: error.replaceAll('\0', '').slice(0, ERROR_LENGTH_MAX), failure_count })
    .where('host', '=', host)
    .execute()
}

type Budget = { kind: 'taken' | 'in_hand' } | { kind: 'all' | 'domain'; until_ms: number }

/**
 * The order is counted before it is placed, so an order that a crash leaves open counts too. The host's next time is moved
 * in the same statement: of two processes that read the same host, only one orders.
 */
async function takeFromBudget(ctx: Context, acme: Acme, { host, chain }: Due): Promise<Budget> {
  const now_ms = ctx.now()
  const domain = host.replace(/^\*\./, '')
  const registrable_domain = getDomain(domain, { allowPrivateDomains: true }) ?? domain
  const is_renewal = chain !== null
  return ctx.db.transaction().execute(async (trx): Promise<Budget> => {
    await sql`select pg_advisory_xact_lock(hashtextextended('acme_orders', 0))`.execute(trx)
    const current = await trx.selectFrom('certificates').select('next_ts').where('host', '=', host).executeTakeFirst()
    if (current === undefined || current.next_ts.getTime() > now_ms) return { kind: 'in_hand' }
    await trx
      .deleteFrom('acme_orders')
      .where('create_ts', '<', new Date(now_ms - DOMAIN_BUDGET_MS))
      .execute()
    const all = await trx
      .selectFrom('acme_orders')
      .select('create_ts')
      .where('create_ts', '>', new Date(now_ms - BUDGET_MS))
      .orderBy('create_ts', 'desc')
      .limit(acme.orders_max)
      .execute()
    if (all.length >= acme.orders_max) return { kind: 'all', until_ms: all.at(-1)!.create_ts.getTime() + BUDGET_MS }
    const own = await trx
      .selectFrom('acme_orders')
      .select('create_ts')
      .where('registrable_domain', '=', registrable_domain)
      .where('is_renewal', '=', false)
      .orderBy('create_ts', 'desc')
      .limit(acme.domain_orders_max)
      .execute()
    if (!is_renewal && own.length >= acme.domain_orders_max) {
      return { kind: 'domain', until_ms: own.at(-1)!.create_ts.getTime() + DOMAIN_BUDGET_MS }
    }
    await trx
      .insertInto('acme_orders')
      .values({ order_id: newId(now_ms), host, registrable_domain, is_renewal, create_ts: new Date(now_ms) })
      .execute()
    await trx
      .updateTable('certificates')
      .set({ next_ts: new Date(now_ms + ORDER_MS_MAX) })
      .where('host', '=', host)
      .execute()
    return { kind: 'taken' }
  })
}
