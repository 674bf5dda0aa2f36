// A guide as HTML. Its headings get the anchors that GitHub gives them. A link to another guide leads to that page; one to a file
// that is not served is shown as text. HTML of a guide, such as a comment, is left out.
import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { GUIDES_PATH } from '../reference/frame.ts'

/** What is between two headings. `anchor`: of the heading; '' before the first. */
type GuideSection = { anchor: string; title: string; text: string }
/** A guide that another one names. */
type GuideLink = { name: string; title: string }
export type RenderedGuide = { title: string; html: string; sections: GuideSection[] }

const EXTERNAL = /^(?:https?:|mailto:)/

/** `targetOf`: the guide at a path of the repository; undefined: it is not served. */
export function renderGuide(
  { path, text }: { path: string; text: string },
  targetOf: (path: string) => GuideLink | undefined,
): RenderedGuide {
  const anchors = new Map<string, number>()
  const sections: GuideSection[] = [{ anchor: '', title: '', text: '' }]
  const marked = new Marked({ gfm: true })
  const tokens = marked.lexer(text)
  for (const token of tokens) {
    if (token.type !== 'heading') {
      sections.at(-1)!.text += ` ${plainText(token)}`
      continue
    }
    const title = plainText(token)
    sections.push({ anchor: anchorOf(title, anchors), title, text: '' })
  }
  // The renderer meets the headings in the same order.
  const headings = sections.slice(1).values()
  marked.use({
    renderer: {
      heading({ tokens: inner, depth }) {
        const anchor = headings.next().value?.anchor ?? ''
        return `<h${depth} id="${anchor}">${this.parser.parseInline(inner)}</h${depth}>\n`
      },
      link({ href, tokens: inner }) {
        const content = this.parser.parseInline(inner)
        if (EXTERNAL.test(href) || href.startsWith('#')) return `<a href="${escaped(href)}">${content}</a>`
        const [file = '', anchor] = href.split('#')
        const target = targetOf(posix.join(posix.dirname(path), file))
        if (target === undefined) return content
        // The files name each other by path. On a page the title says more.
        const text = content.endsWith('.md') ? escaped(target.title) : content
        return `<a href="${addressOf(target, anchor)}">${text}</a>`
      },
      image: ({ text: described }) => `<em>(${escaped(described)})</em>`,
      html: () => '',
    },
  })
  const [, first] = sections
  return { title: first?.title ?? path, html: marked.parser(tokens), sections }
}

/** The first heading. */
export function titleOf(text: string): string {
  return text.match(/^# (.+)$/m)?.[1] ?? ''
}

function addressOf({ name }: GuideLink, anchor: string | undefined): string {
  return `${name === '' ? GUIDES_PATH : `${GUIDES_PATH}/${name}`}${anchor === undefined ? '' : `#${anchor}`}`
}

/** As GitHub names it: lower case, no punctuation, and a number where a page has the same heading twice. */
function anchorOf(title: string, anchors: Map<string, number>): string {
  const anchor = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
  const count = anchors.get(anchor) ?? 0
  anchors.set(anchor, count + 1)
  return count === 0 ? anchor : `${anchor}-${count}`
}

/** The words that a reader sees. */
function plainText(token: Token): string {
  if (token.type === 'html') return ''
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows]
      .flat()
      .map((cell) => cell.tokens.map(plainText).join(''))
      .join(' ')
  }
  if (token.type === 'list') return (token as Tokens.List).items.map(plainText).join(' ')
  if ('tokens' in token && token.tokens !== undefined) return token.tokens.map(plainText).join('')
  return 'text' in token ? String(token.text) : ''
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!)
}
