import { completeUpload } from '@muster/contract'
import * as cloud from '../../cloud/uploads/complete.ts'
import type { TextPacker } from '../../cloud/uploads/pack-texts.ts'
import { type Implementation, implement } from '../implement.ts'

export const uploads = (packer: TextPacker): Implementation[] => [
  implement(completeUpload, async ({ ctx, caller, params }) => {
    await cloud.completeUpload(ctx, packer, caller, params.upload_id)
    return {}
  }),
]
