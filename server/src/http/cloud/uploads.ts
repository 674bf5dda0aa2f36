import { completeUpload, getUpload, listStoredContents } from '@musterhost/contract'
import { uploadOf } from '../../cloud/uploads/arrived.ts'
import * as cloud from '../../cloud/uploads/complete.ts'
import type { TextPacker } from '../../cloud/uploads/pack-texts.ts'
import * as contents from '../../cloud/uploads/stored-contents.ts'
import { type Implementation, implement } from '../implement.ts'

export const uploads = (packer: TextPacker): Implementation[] => [
  implement(completeUpload, ({ ctx, caller, params }) => cloud.completeUpload(ctx, packer, caller, params.upload_id)),
  implement(getUpload, ({ ctx, caller, params, query }) => uploadOf(ctx, caller, params.upload_id, query)),
  implement(listStoredContents, ({ ctx, caller, params, body }) =>
    contents.listStoredContents(ctx, caller, params.game_id, body),
  ),
]
