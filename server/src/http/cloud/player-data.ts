import { erasePlayerData, exportPlayerData, listErasures } from '@musterhost/contract'
import * as erasures from '../../cloud/player-data/erase.ts'
import { exportPlayerData as exportData } from '../../cloud/player-data/export.ts'
import { implement } from '../implement.ts'

export const player_data = [
  implement(exportPlayerData, ({ ctx, caller, params, body }) => exportData(ctx, caller, { ...params, ...body })),
  implement(erasePlayerData, ({ ctx, caller, params, body }) =>
    erasures.erasePlayerData(ctx, caller, { ...params, ...body }),
  ),
  implement(listErasures, ({ ctx, caller, params, query }) =>
    erasures.listErasures(ctx, caller, { ...params, ...query }),
  ),
]
