// The checks of `muster doctor` for the operator's page, in the api role. Their code is loaded when they first run: no role
// needs it otherwise. Calls at the same time share one run.
import type { ResponseOf, runAdminChecks } from '@musterhost/contract'
import type { Context } from '../context.ts'

type Checks = ResponseOf<typeof runAdminChecks>

export function createChecks(ctx: Context): () => Promise<Checks> {
  let running: Promise<Checks> | null = null
  return () => {
    running ??= runChecks(ctx).finally(() => {
      running = null
    })
    return running
  }
}

async function runChecks({ config, now }: Context): Promise<Checks> {
  const { examineRunning } = await import('../doctor/examine.ts')
  const findings = await examineRunning(config, now())
  return {
    run_ts: new Date(now()).toISOString(),
    findings: findings.map(({ remedy, ...finding }) => ({ ...finding, ...(remedy === null ? {} : { remedy }) })),
  }
}
