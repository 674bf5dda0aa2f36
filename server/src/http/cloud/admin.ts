import {
  getAdminBackups,
  getAdminFinds,
  listAdminGroups,
  listAdminJobs,
  listAdminProcesses,
  listAdminRegions,
  listAdminSettings,
  listAdminUsers,
  type ResponseOf,
  runAdminChecks,
} from '@musterhost/contract'
import { findLastHour } from '../../cloud/admin/finds.ts'
import * as groups from '../../cloud/admin/groups.ts'
import * as operations from '../../cloud/admin/operations.ts'
import * as regions from '../../cloud/admin/regions.ts'
import { type Implementation, implement } from '../implement.ts'

/** The checks of `muster doctor`. */
export type RunChecks = () => Promise<ResponseOf<typeof runAdminChecks>>

export const admin = (runChecks: RunChecks): Implementation[] => [
  implement(listAdminGroups, ({ ctx, query }) => groups.listAllGroups(ctx, query)),
  implement(listAdminUsers, ({ ctx, query }) => groups.listAllUsers(ctx, query)),
  implement(listAdminRegions, ({ ctx }) => regions.listAllRegions(ctx)),
  implement(listAdminProcesses, ({ ctx }) => regions.listAllProcesses(ctx)),
  implement(getAdminFinds, ({ ctx }) => findLastHour(ctx)),
  implement(listAdminJobs, ({ ctx }) => operations.listAllJobs(ctx)),
  implement(listAdminSettings, ({ ctx }) => operations.listAllSettings(ctx)),
  implement(getAdminBackups, ({ ctx }) => operations.findBackups(ctx)),
  implement(runAdminChecks, () => runChecks()),
]
