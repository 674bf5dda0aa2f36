// One line of a log for people: colours, carriage returns and the level. It runs in the worker of log-worker.ts.
//
// The platform sends text whose control characters are escaped (`\x1b[31m`). Colours and carriage returns are read back from
// that form. Everything else stays escaped, so a log cannot change the direction of text, or hide parts of the page.
import Anser from 'anser'

export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'none'
export type LogColor = 'bad' | 'good' | 'warn' | 'blue' | 'cyan' | 'magenta' | 'soft'
export type LogSpan = {
  text: string
  color?: LogColor
  is_bold?: true
  is_italic?: true
  is_underlined?: true
  /** It has a background, or swapped colours. */
  is_marked?: true
}

export type ParsedLogLine = {
  /** Without escape sequences. */
  text: string
  /** Only for a line with styles. */
  spans?: LogSpan[]
  level: LogLevel
  /** Earlier texts of the line, which carriage returns have overwritten. */
  folds: number
  /** The platform itself has written the line: that lines were dropped, or are no longer kept. */
  is_gap: boolean
}

const COLOR_SEQUENCE = /\\x1b(\[[\d;:]*m)/g
const OTHER_SEQUENCE = /\\x1b\[[\d;?]*[A-Za-ln-z]/g
const CARRIAGE_RETURN = '\\x0d'
const GAP = /^\[muster\] (?:[\d,]+ lines? dropped|lines before this one)/
/** A longer line is searched for its level only at its start. */
const LEVEL_LENGTH_MAX = 400

export function parseLine(raw: string): ParsedLogLine {
  const { text: folded, folds } = raw.includes(CARRIAGE_RETURN) ? foldReturns(raw) : { text: raw, folds: 0 }
  const is_gap = GAP.test(folded)
  if (!folded.includes('\\x1b')) return { text: folded, level: levelOf(folded), folds, is_gap }
  const spans = spansOf(folded)
  const text = spans.map((span) => span.text).join('')
  const has_styles = spans.some((span) => Object.keys(span).length > 1)
  return { text, ...(has_styles ? { spans } : {}), level: levelOf(text), folds, is_gap }
}

/** A terminal shows the text after the last carriage return: progress bars rewrite their line that way. */
function foldReturns(raw: string): { text: string; folds: number } {
  const texts = raw.split(CARRIAGE_RETURN).filter((text) => text !== '')
  return { text: texts.at(-1) ?? '', folds: Math.max(0, texts.length - 1) }
}

function spansOf(escaped: string): LogSpan[] {
  const text = escaped.replace(OTHER_SEQUENCE, '').replace(COLOR_SEQUENCE, '\u001b$1')
  return Anser.ansiToJson(text, { use_classes: true, remove_empty: true }).map((part) => ({
    text: part.content,
    ...colorOf(part.fg, part.fg_truecolor),
    ...(part.decorations.includes('bold') ? { is_bold: true as const } : {}),
    ...(part.decorations.includes('italic') ? { is_italic: true as const } : {}),
    ...(part.decorations.includes('underline') ? { is_underlined: true as const } : {}),
    ...(part.bg !== null || part.decorations.includes('reverse') ? { is_marked: true as const } : {}),
  }))
}

const COLORS: Readonly<Record<string, LogColor>> = {
  red: 'bad',
  green: 'good',
  yellow: 'warn',
  blue: 'blue',
  cyan: 'cyan',
  magenta: 'magenta',
  'bright-black': 'soft',
}
const BASE_NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

/** The nearest colour of the page, which is readable on a light and on a dark page. Black and white are the colour of the text. */
function colorOf(name: string | null, truecolor: string | null): { color?: LogColor } {
  if (name === null) return {}
  const palette = /^ansi-palette-(\d+)$/.exec(name)
  const color =
    palette !== null
      ? paletteColor(Number(palette[1]))
      : name === 'ansi-truecolor'
        ? nearest(...rgbOf(truecolor))
        : (COLORS[name.slice('ansi-'.length)] ?? COLORS[name.slice('ansi-bright-'.length)])
  return color === undefined ? {} : { color }
}

function rgbOf(text: string | null): [number, number, number] {
  const [red = 0, green = 0, blue = 0] = (text ?? '').split(',').map(Number)
  return [red, green, blue]
}

/** One of 256: 16 names, a cube of 6 by 6 by 6, and 24 greys. */
function paletteColor(index: number): LogColor | undefined {
  if (index === 8) return 'soft'
  if (index < 16) return COLORS[BASE_NAMES[index % 8]!]
  if (index >= 232) return index < 248 ? 'soft' : undefined
  const at = index - 16
  return nearest(Math.floor(at / 36) * 51, (Math.floor(at / 6) % 6) * 51, (at % 6) * 51)
}

/** A colour of less saturation is a grey. */
const SATURATION_MIN = 40

function nearest(red: number, green: number, blue: number): LogColor | undefined {
  const most = Math.max(red, green, blue)
  const range = most - Math.min(red, green, blue)
  if (range < SATURATION_MIN) return most < 160 && most > 60 ? 'soft' : undefined
  const sixth =
    most === red ? (green - blue) / range : most === green ? 2 + (blue - red) / range : 4 + (red - green) / range
  const hue = (sixth * 60 + 360) % 360
  if (hue < 20 || hue >= 340) return 'bad'
  if (hue < 70) return 'warn'
  if (hue < 165) return 'good'
  if (hue < 200) return 'cyan'
  return hue < 265 ? 'blue' : 'magenta'
}

const WORDS: readonly [LogLevel, RegExp][] = [
  ['error', /\b(?:error|fatal|panic|critical|exception|traceback|unhandled)\b|\w+(?:Error|Exception)\b/i],
  ['warn', /\bwarn(?:ing)?\b/i],
  ['debug', /\b(?:debug|trace|verbose)\b/i],
  ['info', /\b(?:info|notice)\b/i],
]
/** Levels of JSON lines as pino and bunyan write them. */
const JSON_LEVEL = /^\{.*?"level":\s*"?(\w+)/

function levelOf(text: string): LogLevel {
  const start = text.length > LEVEL_LENGTH_MAX ? text.slice(0, LEVEL_LENGTH_MAX) : text
  const json = JSON_LEVEL.exec(start)
  if (json !== null) {
    const number = Number(json[1])
    if (number >= 50) return 'error'
    if (number >= 40) return 'warn'
    if (number >= 30) return 'info'
    if (number > 0) return 'debug'
  }
  const searched = json?.[1] ?? start
  return WORDS.find(([, word]) => word.test(searched))?.[0] ?? 'none'
}
