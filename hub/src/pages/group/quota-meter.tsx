// A quota of a group and its use.
import type { getGroupQuotas, ResponseOf } from '@musterhost/contract'
import { Meter } from '../../parts/meter.tsx'
import { bytes, count } from '../../parts/numbers.ts'

type Quota = ResponseOf<typeof getGroupQuotas>['quotas'][number]

/** A quota as people read it: "Storage", "Games". */
export function quotaName({ quota }: Quota): string {
  return quota === 'bytes' ? 'Storage' : quota[0]!.toUpperCase() + quota.slice(1)
}

export function QuotaMeter({ quota, has_name = false }: { quota: Quota; has_name?: boolean }) {
  return (
    <span className="flex flex-wrap items-center gap-2">
      {has_name ? <span className="text-soft">{quotaName(quota)}</span> : null}
      <Meter
        label={quotaName(quota)}
        value={quota.used}
        max={quota.limit}
        format={quota.quota === 'bytes' ? bytes : count}
      />
    </span>
  )
}
