// Codes for people to read and type: upper-case letters without O, and digits without 0.
import { randomInt } from 'node:crypto'

const ALPHABET = 'ABCDEFGHIJKLMNPQRSTUVWXYZ123456789'

export function newCode(length: number): string {
  return Array.from({ length }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('')
}

/** The code as it was shown. A user may type it in lower case, with spaces or dashes. */
export function readCode(typed: string): string {
  return typed.replace(/[\s-]/g, '').toUpperCase()
}
