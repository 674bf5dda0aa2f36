// What strangers wrote, made fit to be shown: a game server's output and a player's words may hold whatever drives a
// terminal, turns the direction of a text, or hides some of it.
import { CONTROL } from './formats.ts'

const CONTROLS = new RegExp(CONTROL.source, 'gu')
const RUNS_OF_CONTROLS = new RegExp(`${CONTROL.source}+`, 'gu')
const TAB = '\t'

/** Tabs stay; every other character that draws nothing and does something is written out: `\x1b[31m`. */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(CONTROLS, (character) => (character === TAB ? character : writtenOut(character)))
}

function writtenOut(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** With a blank in place of them, for a line of its own: also line breaks and tabs. */
export function withoutControls(text: string): string {
  return text.replace(RUNS_OF_CONTROLS, ' ')
}

/** What a spreadsheet would take for a formula. */
const FORMULA = /^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/

/** A cell of a CSV file (RFC 4180): visible, quoted where it must be, and never a formula. */
export function csvCell(text: string): string {
  const visible = visibleText(text).replaceAll(TAB, ' ')
  const inert = FORMULA.test(visible) ? `'${visible}` : visible
  return /[",'\s]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}
