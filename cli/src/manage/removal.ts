// The question before something is removed.
import { EXIT, Failure } from '../failure.ts'
import type { Terminal } from '../terminal.ts'

export type RemovalOptions = { yes?: boolean }

/** Throws when the user does not agree. */
export async function confirmRemoval(terminal: Terminal, what: string, { yes }: RemovalOptions): Promise<void> {
  if (yes === true || (await terminal.confirm(what, '--yes'))) return
  throw new Failure('Nothing was changed.', { exit_code: EXIT.failed })
}
