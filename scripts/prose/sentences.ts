// Splits prose into sentences and counts their words. What is not prose stands as one word in it: code in backticks
// becomes CODE, an address becomes URL.

export type Sentence = { text: string; words: number; offset: number }

const CODE_SPAN = /(`+)[^`](?:[\s\S]*?[^`])?\1(?!`)/g
const ADDRESS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s)>\]'"]*[^\s)>\]'".,;:!?]/gi
const ABBREVIATION = /(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|max|min|no|fig|al|[A-Z])\.$/
/** The end of a sentence: its mark, brackets and quotes that close, then space. */
const END = /[.!?]+["'”’)\]*_]*(?=\s)/g

/** Replaces code and addresses. Line breaks inside them are kept, so that lines can still be counted. */
export function proseOf(text: string): string {
  return text.replace(CODE_SPAN, (code) => blank(code, 'CODE')).replace(ADDRESS, (address) => blank(address, 'URL'))
}

/** A word of the same length, so that offsets stay true. Shorter code becomes a shorter word. */
function blank(text: string, word: string): string {
  const short = word.slice(0, text.length)
  return short + text.slice(short.length).replace(/[^\n]/g, '\u00a0')
}

/** `text` is one paragraph, list item or table cell, as proseOf returns it. */
export function sentencesOf(text: string): Sentence[] {
  const sentences: Sentence[] = []
  let begin = 0
  for (const { index, 0: mark } of text.matchAll(END)) {
    const end = index + mark.length
    if (ABBREVIATION.test(text.slice(begin, end))) continue
    add(sentences, text, begin, end)
    begin = end
  }
  add(sentences, text, begin, text.length)
  return sentences
}

function add(sentences: Sentence[], whole: string, begin: number, end: number): void {
  const text = whole.slice(begin, end)
  const words = text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
  if (words > 0) sentences.push({ text: text.trim(), words, offset: begin + text.search(/\S/) })
}
