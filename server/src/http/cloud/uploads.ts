import { completeUpload } from '@muster/contract'
import * as cloud from '../../cloud/uploads/complete.ts'
import { implement } from '../implement.ts'

export const uploads = [
  implement(completeUpload, async ({ ctx, caller, params }) => {
    await cloud.completeUpload(ctx, caller, params.upload_id)
    return {}
  }),
]
