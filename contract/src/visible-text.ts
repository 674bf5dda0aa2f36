// Makes untrusted text safe to show. The output of a game server and the name of a player may contain characters that control
// a terminal, change the direction of text, or hide parts of it.
import { CONTROL } from './formats.ts'

const CONTROLS = new RegExp(CONTROL.source, 'gu')
const RUNS_OF_CONTROLS = new RegExp(`${CONTROL.source}+`, 'gu')
const TAB = '\t'

/** Escapes all control characters except tabs: `\x1b[31m`. */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(CONTROLS, (character) => (character === TAB ? character : writtenOut(character)))
}

function writtenOut(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** Replaces control characters, line breaks and tabs by blanks, so that the text is one line. */
export function withoutControls(text: string): string {
  return text.replace(RUNS_OF_CONTROLS, ' ')
}

/** Text that a spreadsheet would read as a formula. */
const FORMULA = /^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/

/** A cell of a CSV file (RFC 4180): visible, quoted where it must be, and never a formula. */
export function csvCell(text: string): string {
  const visible = visibleText(text).replaceAll(TAB, ' ')
  const inert = FORMULA.test(visible) ? `'${visible}` : visible
  return /[",'\s]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

/** Characters of a member's name that an error repeats. No name that the platform knows is longer. */
const NAME_SHOWN_MAX = 256

/** What an error repeats of the name that a client gave a member. */
export function shownName(name: string): string {
  return name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX).toWellFormed()}…` : name
}
