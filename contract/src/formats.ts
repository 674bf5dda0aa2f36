// String formats of the schemas, as functions. The schema validator uses them, and so does code that receives text without a
// schema.

/**
 * Characters that draw nothing and do something: C0 and C1 controls, line and paragraph separators, and those that
 * turn the direction of the text around them (a name must not be able to rewrite the sentence it is shown in).
 */
export const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u
/** Anything that leaves a mark on the screen. */
const VISIBLE = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}]/u
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Times in seconds have fewer digits for the next thousand years, so they are refused. */
const EPOCH_MS = /^[1-9]\d{11,13}$/

/** The form of HTML's <input type=email>, in ASCII. Everything else that RFC 5322 allows is unusual, and useful to attackers. */
const EMAIL =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i

export function hasControlCharacters(text: string): boolean {
  return CONTROL.test(text)
}

/** A name for people: visible, without control characters. The schema limits its length, in code points. */
function isDisplayName(text: string): boolean {
  return VISIBLE.test(text) && !CONTROL.test(text)
}

/** Lower case only: an id has one spelling. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** RFC 3339 with an upper-case T and Z, without leap seconds. */
function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  if (match === null) return false
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth(year, month)
}

function daysOfMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

function isEmail(text: string): boolean {
  return EMAIL.test(text)
}

/** A moment: a date-time, or milliseconds since the epoch. */
function isInstant(text: string): boolean {
  return EPOCH_MS.test(text) || isDateTime(text)
}

/** What the parser of URLs removes or encodes without a word: blanks, controls and characters that are not seen. */
const NOT_IN_A_URL = /[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\]/u
/** The parser also takes `https:host` and `https:///host`. */
const URL_START = /^[a-z][a-z0-9+.-]*:\/\/[^/]/i

/**
 * A sentence about a text that a parser would read as another URL than a person does; null: there is no such difference.
 * It is asked before the text is parsed, because a parsed URL no longer shows what was removed.
 */
export function urlTextFault(text: string): string | null {
  const [found] = NOT_IN_A_URL.exec(text) ?? []
  if (found !== undefined) {
    const code = found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
    return `The address contains the character U+${code}. Remove it, or write it percent-encoded.`
  }
  return URL_START.test(text) ? null : 'The address must begin with a scheme and two slashes: https://host/path.'
}

export const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'display-name': isDisplayName,
  email: isEmail,
  uuid: isUuid,
  'date-time': isDateTime,
  instant: isInstant,
}
