// HTML that cannot be broken out of: what is put into a template is text, unless it came out of one.
import { escapeHtml } from '../../text/escape-html.ts'

export type Html = { readonly html: string }
type Part = Html | string | number | null | readonly Part[]

function textOf(part: Part): string {
  if (part === null) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(textOf).join('')
}

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { html: String.raw({ raw: strings }, ...parts.map(textOf)) }
}

/** For files of ours that are HTML's own already: styles and scripts. */
export function verbatim(text: string): Html {
  return { html: text }
}

/** A sentence of the contract, in which `backticks` mean code. */
export function prose(text: string): Html {
  const parts = text.split(/`([^`]+)`/)
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
