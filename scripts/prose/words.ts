// The words this house does not use in comments, descriptions, messages and documents. Each entry says what to write
// instead and why. A pattern sees prose: code in backticks and addresses are taken out before.

export type WordRule = {
  pattern: RegExp
  instead: string
  why: string
  /** A sentence that breaks the rule, and sentences that keep it: the test reads them. */
  example: string
  counter_examples?: readonly string[]
  /** Present: the rule reads the first sentence of each paragraph of a comment, and no other text. */
  only?: 'beginning_of_comment'
  /** Folders or files that the rule holds in; without: all. */
  within?: readonly string[]
  allowed?: readonly { file: string; why: string }[]
}

const SUBJECT = 'A sentence names its subject: the client, the caller, the server of the lobby, the request.'
const FILLER = 'The sentence says the same without it.'
const METAPHOR = 'A metaphor must be learnt room by room, and nobody searches for it.'
const SOURCES = ['contract/src/', 'server/src/', 'cli/src/', 'sdk/src/', 'hub/src/']

export const WORDS: readonly WordRule[] = [
  {
    pattern: /^(?:Of|That|Those|Them|Whose)\b/,
    instead: 'a noun or a verb: "Rows of one shard that one transaction writes."',
    why: 'Such a comment has its subject in the code below or in the comment above, and reads as a riddle without them.',
    example: 'Of a shard in one transaction.',
    counter_examples: ['Rows of one shard. Of these, few are new.', 'Offline players.'],
    only: 'beginning_of_comment',
    within: SOURCES,
  },
  {
    pattern: /^Answers\b|\banswers (?:whether|how|what|which|where|null|true|false|undefined|nothing)\b/,
    instead: 'returns',
    why: 'A function returns. In a server an answer goes to a client.',
    example: 'Answers whether the lobby is open.',
    counter_examples: ['The name server answers with two addresses.', 'The edge answers a request that it refuses.'],
  },
  {
    pattern: /\bwhoever\b/i,
    instead: 'the client, the caller, every reader, ...',
    why: SUBJECT,
    example: 'Closes the connection of whoever sends more.',
  },
  {
    pattern:
      /\bnobody (?:has|had|is|was|knows|waits|waited|looked|looks|asked|asks|saw|wants|tells|told|reads|takes)\b/i,
    instead: 'name the subject: "no client has", "the row is unread", "no request waits"',
    why: SUBJECT,
    example: 'Bytes that nobody has taken.',
    counter_examples: ['A token that nobody else holds.'],
  },
  {
    pattern: /\b(?:he|him|his|himself|she|hers|herself)\b/i,
    instead: 'the client, the player, their',
    why: 'A client is a program, and a player is anybody.',
    example: 'The player loses his seat.',
    counter_examples: ['The player loses the seat.', 'hE2 is a hexadecimal digit pair.'],
  },
  {
    pattern: /\bin vain\b/i,
    instead: 'without success, without finding ...',
    why: FILLER,
    example: 'Bytes that were scanned in vain.',
  },
  {
    pattern: /\bas (?:it|they) stands?\b/i,
    instead: 'unchanged, as is, ready to use',
    why: FILLER,
    example: 'The header is sent as it stands.',
  },
  { pattern: /\ball the same\b/i, instead: 'still, or nothing', why: FILLER, example: 'It is stored all the same.' },
  { pattern: /\bwhom\b/i, instead: 'name the subject', why: SUBJECT, example: 'Players of whom two have left.' },
  {
    pattern: /\b(?:tells|(?:is|are|was|were|be|been|being) told)\b/i,
    instead: 'reports, notifies, returns, says; receives',
    why: 'A program reports, notifies or returns.',
    example: 'The runner is told when the lobby has ended.',
  },
  {
    pattern: /\b(?:looks|looked|looking|look) at\b/i,
    instead: 'reads, checks, scans',
    why: 'A program reads.',
    example: 'A claim is looked at every minute.',
  },
  {
    pattern: /\bof it,/i,
    instead: 'name the thing, or nothing',
    why: FILLER,
    example: 'What has come; of it, how much was read.',
    counter_examples: ['A copy of it is kept.'],
  },
  {
    pattern: /\b(?:so|as) many(?=[,;:.)]|$)|\bafter so many\b/i,
    instead: 'say how many, or which setting says so',
    why: 'The reader cannot know how many.',
    example: 'A claim is failed after so many.',
    counter_examples: ['Reserves as many ports as the config names.'],
  },
  {
    pattern: /\bby (?:itself|themselves)\b/i,
    instead: 'alone, separately, automatically, or nothing',
    why: 'It means alone, without help or automatically: say which.',
    example: 'The certificate is renewed by itself.',
  },
  {
    pattern: /\b(?:desks?|census|shel(?:f|ves)|tales?|tellers?|keepers?|sitters?)\b/i,
    instead: 'the term of the rename table: context, lobby counts, index, decision log, handlers, entrant',
    why: METAPHOR,
    example: 'The desk puts the lobby on a shelf.',
  },
  {
    pattern: /(?<!front )\bdoors?\b/i,
    instead: 'listener, endpoint, entry point',
    why: METAPHOR,
    example: 'A door of the platform.',
    counter_examples: ['The front door has the tests of HTTP.'],
  },
  {
    pattern: /\bcrowds?\b/i,
    instead: 'connection limits, many clients',
    why: METAPHOR,
    example: 'The crowd of a port is counted.',
  },
  {
    pattern: /\b(?:in|into|holds?|of|change|leaves?|left|takes?|the) office\b/i,
    instead: 'leadership',
    why: METAPHOR,
    example: 'The matchmaker could not change office.',
  },
  {
    pattern: /\bwish(?:es|ed)?\b/i,
    instead: 'request, requested',
    why: METAPHOR,
    example: 'The wish of a client is kept for a second.',
  },
  {
    pattern: /\b(?:un)?shelved?\b/i,
    instead: 'index, listed',
    why: METAPHOR,
    example: 'The lobby is shelved.',
  },
]
