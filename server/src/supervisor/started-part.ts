import type { StopHow } from './stop-request.ts'
import type { SupervisedRole } from './supervised-role.ts'

/** A started part. Parts are stopped in the reverse order. */
export type StartedPart = {
  stop: (how: StopHow) => Promise<void> | void
  kill?: () => void
  /** A planned restart of the part, if it can be restarted alone; of another program from then on, if one is named. */
  restart?: SupervisedRole['restart']
  /** The part's processes run on while this program is replaced. Their logs are in the folder. */
  stay?: (log_folder: string) => Promise<void>
}
