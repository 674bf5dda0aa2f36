// A line for the standard input of a lobby's server. The arrow keys bring back earlier lines of the same game mode, which this
// browser keeps while its tab is open.
import { type KeyboardEvent, useState } from 'react'
import { getGameVersionById, writeLobbyInput } from '../../api/operations.gen.ts'
import { useCall, useChange } from '../../api/queries.ts'
import { Button } from '../../parts/button.tsx'
import { CopyAs } from '../../parts/copy-as.tsx'
import { TextField } from '../../parts/fields.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Section } from '../../parts/page.tsx'
import { useNamespace } from '../namespace/namespace.ts'

const LINES_KEPT_MAX = 100
const LINE_LENGTH_MAX = 1_000

/** Whether the deployed version lets developers write to the servers of a game mode. */
export function useHasConsole(mode: string, is_enabled: boolean): boolean {
  const { game, namespace } = useNamespace()
  const params = { game_id: game.game_id, version_id: namespace.version_id }
  const read = useCall(getGameVersionById, { params }, { enabled: is_enabled })
  const matchmaker = read.data?.version.config.matchmaker
  const docker = matchmaker?.game_modes[mode]?.docker ?? matchmaker?.docker
  return is_enabled && docker?.standard_input === true
}

export function LobbyConsole({ game_id, lobby_id, mode }: { game_id: string; lobby_id: string; mode: string }) {
  const [text, setText] = useState('')
  const [lines, keep] = useLines(`muster.console.${game_id}.${mode}`)
  /** The place of the line that is shown, from the newest; null: what the person types. */
  const [place, setPlace] = useState<number | null>(null)
  const change = useChange(writeLobbyInput, {
    shows_errors: true,
    onDone: (_, { body }) => {
      keep(body.text)
      setText('')
      setPlace(null)
    },
  })
  const input = { params: { game_id, lobby_id }, body: { text } }

  function onKey(event: KeyboardEvent): void {
    const step = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const next = (place ?? -1) + step
    const line = lines[next]
    if (next < 0) {
      setPlace(null)
      setText('')
    } else if (line !== undefined) {
      setPlace(next)
      setText(line)
    }
  }

  return (
    <Section
      title="Console"
      actions={<CopyAs operation={writeLobbyInput} input={input} muster={`console ${lobby_id}`} />}
      is_bare
    >
      <form
        className="flex flex-col gap-2"
        onSubmit={(event) => {
          event.preventDefault()
          if (text !== '' && !change.isPending) change.mutate(input)
        }}
      >
        <div className="flex items-end gap-2">
          <div className="min-w-0 flex-1">
            <TextField
              label="Line for the standard input of the server"
              value={text}
              maxLength={LINE_LENGTH_MAX}
              autoComplete="off"
              spellCheck={false}
              onKeyDown={onKey}
              onChange={setText}
            />
          </div>
          <Button type="submit" kind="primary" is_busy={change.isPending} disabled={text === ''}>
            Send
          </Button>
        </div>
        <p className="text-xs text-soft">
          ↑ and ↓ bring back earlier lines. The log shows each line with the name of its sender, and so does the audit
          log.
        </p>
        {change.error === null ? null : <Failure error={change.error} />}
      </form>
    </Section>
  )
}

/** The lines that were sent, newest first. */
function useLines(key: string): [lines: readonly string[], keep: (line: string) => void] {
  const [lines, setLines] = useState<readonly string[]>(() => readLines(key))
  return [
    lines,
    (line) => {
      const next = [line, ...lines.filter((one) => one !== line)].slice(0, LINES_KEPT_MAX)
      setLines(next)
      sessionStorage.setItem(key, JSON.stringify(next))
    },
  ]
}

function readLines(key: string): string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(key) ?? '[]')
    return Array.isArray(kept) ? kept.filter((line) => typeof line === 'string') : []
  } catch {
    return []
  }
}
