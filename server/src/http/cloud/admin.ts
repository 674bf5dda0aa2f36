import {
  getAdminBackups,
  getAdminFinds,
  listAdminGroups,
  listAdminJobs,
  listAdminProcesses,
  listAdminRegions,
  listAdminSettings,
  listAdminUsers,
  listStoredBackups,
  type ResponseOf,
  restoreAdminBackup,
  restoreGame,
  runAdminBackup,
  runAdminChecks,
} from '@musterhost/contract'
import { findLastHour } from '../../cloud/admin/finds.ts'
import * as groups from '../../cloud/admin/groups.ts'
import * as operations from '../../cloud/admin/operations.ts'
import * as regions from '../../cloud/admin/regions.ts'
import * as backups from '../../cloud/backups/operations.ts'
import { type Implementation, implement } from '../implement.ts'

/** The checks of `muster doctor`. */
export type RunChecks = () => Promise<ResponseOf<typeof runAdminChecks>>

export const admin = (runChecks: RunChecks, restores: backups.Restores): Implementation[] => [
  implement(listAdminGroups, ({ ctx, query }) => groups.listAllGroups(ctx, query)),
  implement(listAdminUsers, ({ ctx, query }) => groups.listAllUsers(ctx, query)),
  implement(listAdminRegions, ({ ctx }) => regions.listAllRegions(ctx)),
  implement(listAdminProcesses, ({ ctx }) => regions.listAllProcesses(ctx)),
  implement(getAdminFinds, ({ ctx }) => findLastHour(ctx)),
  implement(listAdminJobs, ({ ctx }) => operations.listAllJobs(ctx)),
  implement(listAdminSettings, ({ ctx }) => operations.listAllSettings(ctx)),
  implement(getAdminBackups, ({ ctx }) => backups.findBackups(ctx)),
  implement(runAdminBackup, ({ ctx }) => backups.beginBackup(ctx)),
  implement(listStoredBackups, ({ ctx }) => backups.listStored(ctx)),
  implement(restoreAdminBackup, ({ ctx, body }) => restores.beginPlatform(ctx, body)),
  implement(restoreGame, ({ ctx, body }) => restores.beginGame(ctx, body)),
  implement(runAdminChecks, () => runChecks()),
]
