// The editor of a version config: JSON with completion and explanations from the contract's schema, and the platform's errors
// at their lines.
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, hoverTooltip, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { ErrorDetail } from '@musterhost/contract'
import { VersionConfig } from '@musterhost/contract'
import { useEffect, useRef } from 'react'
import { isAtName, pathAt, rangeOf } from './json-path.ts'
import { type ConfigSchema, emptyValueOf, membersOf, schemasAt, valuesOf } from './schema.ts'

const SCHEMA = VersionConfig as unknown as ConfigSchema
/** The platform checks the text when the person pauses. */
const CHECK_AFTER_MS = 400

export type EditorProps = {
  /** Read once: afterwards the text is that of the editor, so a late render never overwrites what is typed. */
  initial_text: string
  onChange: (text: string) => void
  /** Asks the platform. Paths are those of members of the config. */
  check: (config: unknown) => Promise<{ errors: readonly ErrorDetail[]; warnings: readonly ErrorDetail[] }>
}

export default function Editor({ initial_text, onChange, check }: EditorProps) {
  const frame = useRef<HTMLDivElement>(null)
  const latest = useRef({ onChange, check })
  latest.current = { onChange, check }

  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor is made once.
  useEffect(() => {
    if (frame.current === null) return
    const made = new EditorView({ doc: initial_text, parent: frame.current, extensions: extensionsOf(latest) })
    return () => made.destroy()
  }, [])

  return <div ref={frame} className="min-h-80 overflow-hidden rounded-b-lg" />
}

type Latest = { current: Pick<EditorProps, 'onChange' | 'check'> }

function extensionsOf(latest: Latest) {
  const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
  return [
    EditorView.cspNonce.of(nonce),
    EditorState.tabSize.of(2),
    lineNumbers(),
    foldGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    json(),
    syntaxHighlighting(COLORS),
    THEME,
    autocompletion({ override: [complete], icons: false }),
    hoverTooltip(explain),
    lintGutter(),
    linter((view) => diagnosticsOf(view, latest), { delay: CHECK_AFTER_MS }),
    // Escape and then Tab leaves the editor, as CodeMirror documents for people without a mouse.
    keymap.of([...completionKeymap, ...lintKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({
      'aria-label': 'Config, as JSON. Press Escape, then Tab, to leave the editor.',
      tabindex: '0',
    }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString())
    }),
  ]
}

async function diagnosticsOf(view: EditorView, latest: Latest): Promise<readonly Diagnostic[]> {
  const broken = jsonParseLinter()(view)
  if (broken.length > 0) return broken
  const text = view.state.doc.toString()
  const found = await latest.current.check(JSON.parse(text)).catch(() => null)
  // The text has changed meanwhile: the next check is on its way.
  if (found === null || view.state.doc.toString() !== text) return []
  const mark =
    (severity: Diagnostic['severity']) =>
    ({ path, message }: ErrorDetail): Diagnostic => {
      const inner = path[0] === 'config' ? path.slice(1) : path
      return { ...rangeOf(view.state, inner), severity, message: `${inner.join('.')}: ${message}` }
    }
  return [...found.errors.map(mark('error')), ...found.warnings.map(mark('warning'))]
}

function complete(context: CompletionContext): CompletionResult | null {
  const { state, pos, explicit } = context
  const word = context.matchBefore(/"?[\w-]*"?/)
  if (word === null || (word.from === word.to && !explicit)) return null
  const path = pathAt(state, word.from)
  if (!isAtName(state, pos)) {
    const options = valuesOf(schemasAt(SCHEMA, path)).map((label) => ({ label, type: 'constant' }))
    return { from: word.from, options }
  }
  // Within a name that is being typed, the path ends with it.
  const is_in_name = context.tokenBefore(['PropertyName']) !== null
  const members = membersOf(schemasAt(SCHEMA, is_in_name ? path.slice(0, -1) : path))
  const options = [...members].map(([name, schema]) => ({
    label: `"${name}"`,
    apply: is_in_name ? `"${name}"` : `"${name}": ${emptyValueOf(schema)}`,
    type: 'property',
    info: schema.description ?? '',
  }))
  return { from: word.from, options }
}

/** The description of the member under the pointer. */
function explain(view: EditorView, position: number) {
  const path = pathAt(view.state, position)
  const [schema] = schemasAt(SCHEMA, path)
  if (path.length === 0 || schema?.description === undefined) return null
  const { description } = schema
  return {
    pos: position,
    create() {
      const dom = document.createElement('div')
      dom.className = 'max-w-md p-2 text-xs'
      dom.textContent = `${path.at(-1)}: ${description}`
      return { dom }
    },
  }
}

const COLORS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

const THEME = EditorView.theme({
  '&': { backgroundColor: 'var(--page)', color: 'var(--text)', fontSize: '13px', maxHeight: '65vh' },
  '.cm-content': { fontFamily: 'var(--font-mono, monospace)', caretColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--mark)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-scroller': { overflow: 'auto' },
})
