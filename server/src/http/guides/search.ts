// The search in the guides: sections that contain every word, those first that have the words in their headings.
import type { RenderedGuide } from './render.ts'

/** Characters of a question that are read. */
export const QUESTION_LENGTH_MAX = 200
/** Words of a question that are read. */
const WORDS_MAX = 8
const FOUND_MAX = 30
/** Characters of a section that are shown. */
const EXCERPT_LENGTH = 200
/** Characters of an excerpt before the first word that was found. */
const LEAD_LENGTH = 60
const HEADING_WEIGHT = 20
const TITLE_WEIGHT = 10
/** A word counts at most so often in one section. */
const COUNT_MAX = 5

export type SearchHit = { name: string; anchor: string; title: string; guide_title: string; excerpt: string }
type Entry = { found: Omit<SearchHit, 'excerpt'>; text: string; lower: string; heading: string; guide: string }

export class GuideSearch {
  readonly #entries: Entry[]

  constructor(guides: ReadonlyMap<string, RenderedGuide>) {
    this.#entries = [...guides].flatMap(([name, { title: guide_title, sections }]) =>
      sections.map(({ anchor, title, text }) => {
        const clean = text.replace(/\s+/g, ' ').trim()
        return {
          found: { name, anchor, title: title === '' ? guide_title : title, guide_title },
          text: clean,
          lower: clean.toLowerCase(),
          heading: title.toLowerCase(),
          guide: guide_title.toLowerCase(),
        }
      }),
    )
  }

  /** The best sections first, at most 30. */
  find(question: string): SearchHit[] {
    const words = wordsOf(question)
    if (words.length === 0) return []
    return this.#entries
      .map((entry) => ({ entry, score: scoreOf(entry, words) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, FOUND_MAX)
      .map(({ entry }) => ({ ...entry.found, excerpt: excerptOf(entry, words) }))
  }
}

function wordsOf(question: string): string[] {
  return question.slice(0, QUESTION_LENGTH_MAX).toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX)
}

/** 0: a word is missing. */
function scoreOf({ lower, heading, guide }: Entry, words: readonly string[]): number {
  let score = 0
  for (const word of words) {
    const of_heading = heading.includes(word) ? HEADING_WEIGHT : 0
    const of_title = guide.includes(word) ? TITLE_WEIGHT : 0
    const count = countOf(lower, word)
    if (of_heading === 0 && count === 0) return 0
    score += of_heading + of_title + count
  }
  return score
}

function countOf(text: string, word: string): number {
  let count = 0
  for (let at = text.indexOf(word); at !== -1 && count < COUNT_MAX; at = text.indexOf(word, at + word.length)) count++
  return count
}

function excerptOf({ text, lower }: Entry, words: readonly string[]): string {
  const at = Math.min(...words.map((word) => lower.indexOf(word)).filter((index) => index !== -1))
  const start = Number.isFinite(at) ? Math.max(0, at - LEAD_LENGTH) : 0
  const excerpt = text.slice(start, start + EXCERPT_LENGTH)
  return `${start > 0 ? '… ' : ''}${excerpt}${start + EXCERPT_LENGTH < text.length ? ' …' : ''}`
}
