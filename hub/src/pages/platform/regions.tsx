// Regions with their tiers, capacity and use.
import type { listAdminRegions, ResponseOf } from '@musterhost/contract'
import { listAdminRegions as listRegions } from '../../api/operations.gen.ts'
import { useCall } from '../../api/queries.ts'
import { HOME } from '../../links.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Meter } from '../../parts/meter.tsx'
import { Badge, Pending } from '../../parts/notice.tsx'
import { bytes, count, plural } from '../../parts/numbers.ts'
import { Empty, Facts, Page, Section } from '../../parts/page.tsx'
import { Ago } from '../../parts/time.tsx'

type Region = ResponseOf<typeof listAdminRegions>['regions'][number]

const REGIONS_EVERY_MS = 5_000
const MEBIBYTE = 1024 * 1024

export default function Regions() {
  const read = useCall(listRegions, {}, { every_ms: REGIONS_EVERY_MS })
  return (
    <Page title="Regions" crumbs={[{ text: 'Home', to: HOME }]} actions={<CopyAs operation={listRegions} input={{}} />}>
      <Pending read={read} />
      {(read.data?.regions ?? []).map((region) => (
        <RegionSection key={region.region_id} region={region} />
      ))}
    </Page>
  )
}

function RegionSection({ region }: { region: Region }) {
  const { cpu_cores, cpu_cores_max, memory_mb, memory_mb_max, lobby_count, player_count } = region
  const used = new Map(region.use_by_tier.map((use) => [use.tier_name_id, use.lobby_count]))
  return (
    <Section title={`${region.region_display_name} (${region.region_name_id})`}>
      <Facts
        facts={[
          ['Lobbies', `${plural(lobby_count, 'lobby', 'lobbies')} with ${plural(player_count, 'player')}`],
          [
            'Cores',
            <Meter key="cpu" label="Cores" value={cpu_cores} max={cpu_cores_max} format={(value) => String(value)} />,
          ],
          [
            'Memory',
            <Meter
              key="memory"
              label="Memory"
              value={memory_mb * MEBIBYTE}
              max={memory_mb_max === undefined ? undefined : memory_mb_max * MEBIBYTE}
              format={bytes}
            />,
          ],
          [
            'Runners',
            region.runners.length === 0 ? (
              <Badge key="none" tone="bad">
                none
              </Badge>
            ) : (
              <ul key="runners">
                {region.runners.map(({ runner_id, disk_free_bytes, seen_ts }) => (
                  <li key={runner_id}>
                    {runner_id}: {bytes(disk_free_bytes)} of disk free, seen <Ago ts={seen_ts} />
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
      {region.tiers.length === 0 ? (
        <Empty>The region has no tier.</Empty>
      ) : (
        <DataTable
          label={`Tiers of ${region.region_display_name}`}
          rows={region.tiers}
          rowId={(tier) => tier.tier_name_id}
          empty=""
          columns={[
            {
              id: 'name',
              title: 'Tier',
              cell: ({ tier_name_id }) => (
                <>
                  <code>{tier_name_id}</code> {tier_name_id === region.default_tier ? <Badge>default</Badge> : null}
                </>
              ),
            },
            {
              id: 'lobbies',
              title: 'Lobbies',
              is_number: true,
              sortBy: ({ tier_name_id }) => used.get(tier_name_id) ?? 0,
              cell: ({ tier_name_id }) => count(used.get(tier_name_id) ?? 0),
            },
          ]}
        />
      )}
    </Section>
  )
}
