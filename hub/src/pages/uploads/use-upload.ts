// One upload of a page: announced, sending, paused or failed, complete.
import { FIRST_PART_BYTES, shorterPartBytes } from '@musterhost/contract/upload-parts'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { CallError } from '../../api/call-error.ts'
import { showToast } from '../../toasts.ts'
import type { LocalFile } from './local-files.ts'
import { BodyTooLargeError, resume, sendAll, type Transfer, type UploadPart } from './transfer.ts'

export type UploadRow = { path: string; length: number; sent: number }

export type UploadState =
  | { kind: 'none' }
  | { kind: 'preparing'; rows: readonly UploadRow[] }
  | { kind: 'sending'; rows: readonly UploadRow[] }
  | { kind: 'failed'; rows: readonly UploadRow[]; error: CallError; upload_id: string | null }
  | { kind: 'complete'; rows: readonly UploadRow[] }

/** What a step of an upload gets, and where it reports. */
export type StepTransfer = Transfer & { onAnnounced: (upload_id: string) => void }

export type Announced = { upload_id: string; parts: readonly UploadPart[] }

/** The bars are drawn anew at most this often. */
const DRAW_MS = 100

export function useUpload(done: string) {
  const client = useQueryClient()
  const [state, setState] = useState<UploadState>({ kind: 'none' })
  const stop = useRef<AbortController | null>(null)
  useEffect(() => () => stop.current?.abort(), [])

  /** `step` sends the files and reports to the transfer. */
  async function run(
    files: readonly LocalFile[],
    step: (transfer: StepTransfer) => Promise<void>,
    known_id: string | null,
  ): Promise<void> {
    const rows = new Map(files.map(({ path, file }) => [path, { path, length: file.size, sent: 0 }]))
    const list = (): UploadRow[] => [...rows.values()].map((row) => ({ ...row }))
    const controller = new AbortController()
    stop.current = controller
    let upload_id = known_id
    setState({ kind: 'preparing', rows: list() })
    const timer = setInterval(
      () => setState((now) => (now.kind === 'sending' ? { ...now, rows: list() } : now)),
      DRAW_MS,
    )
    try {
      await step({
        files,
        signal: controller.signal,
        onSent(path, bytes) {
          const row = rows.get(path)
          if (row !== undefined) row.sent = Math.min(row.length, Math.max(0, row.sent + bytes))
        },
        onAnnounced(id) {
          upload_id = id
          setState({ kind: 'sending', rows: list() })
        },
      })
      for (const row of rows.values()) row.sent = row.length
      setState({ kind: 'complete', rows: list() })
      showToast('good', done)
    } catch (failure) {
      const error = failure instanceof CallError ? failure : new CallError('UPLOAD_FAILED', String(failure))
      setState({ kind: 'failed', rows: list(), error, upload_id })
    } finally {
      clearInterval(timer)
      await client.invalidateQueries()
    }
  }

  return {
    state,
    /** For uploads that are announced and completed in their own way. */
    runStep: (files: readonly LocalFile[], step: (transfer: StepTransfer) => Promise<void>) => run(files, step, null),
    start: (files: readonly LocalFile[], announce: (part_bytes: number) => Promise<Announced>) =>
      run(files, (transfer) => announceAndSend(announce, transfer), null),
    continueUpload: (upload_id: string, files: readonly LocalFile[]) =>
      run(
        files,
        async (transfer) => {
          transfer.onAnnounced(upload_id)
          await resume(upload_id, transfer)
        },
        upload_id,
      ),
    pause: () => stop.current?.abort(),
    reset: () => setState({ kind: 'none' }),
  }
}

/** Announces the files again with shorter parts, while something in front of the platform refuses the longer ones. */
async function announceAndSend(
  announce: (part_bytes: number) => Promise<Announced>,
  transfer: StepTransfer,
): Promise<void> {
  let part_bytes: number | undefined = FIRST_PART_BYTES
  while (part_bytes !== undefined) {
    const { upload_id, parts } = await announce(part_bytes)
    transfer.onAnnounced(upload_id)
    markStored(transfer, parts)
    try {
      return await sendAll(upload_id, parts, transfer)
    } catch (error) {
      part_bytes = error instanceof BodyTooLargeError ? shorterPartBytes(error.body_bytes) : undefined
      if (part_bytes === undefined) throw error
    }
  }
}

/** Files without a part need no bytes: the group stores their content already. */
function markStored(transfer: Pick<Transfer, 'files' | 'onSent'>, parts: readonly UploadPart[]): void {
  const sent = new Set(parts.map(({ path }) => path))
  for (const { path, file } of transfer.files) if (!sent.has(path)) transfer.onSent(path, file.size)
}
