// What a page of the documentation tells its reader to do, in order: its `sh` blocks, and the addresses to open.

export type Step =
  | { kind: 'sh'; line: number; text: string }
  | { kind: 'not_run'; line: number; why: string }
  | { kind: 'open'; line: number; url: string }

const BLOCK_START = '```sh'
const BLOCK_END = '```'
/** In the line before a block that no test can run. */
const NOT_RUN = /^<!-- not run: (.+) -->$/
const OPEN = /\bOpen <(http[^>]+)>/

export function stepsOf(markdown: string): Step[] {
  const lines = markdown.split('\n')
  const steps: Step[] = []
  for (let index = 0; index < lines.length; index += 1) {
    const text = lines[index] ?? ''
    const line = index + 1
    const [, url] = OPEN.exec(text) ?? []
    if (url !== undefined) steps.push({ kind: 'open', line, url })
    if (text !== BLOCK_START) continue
    const end = lines.indexOf(BLOCK_END, line)
    if (end === -1) throw new Error(`The block of line ${line} has no end.`)
    const [, why] = NOT_RUN.exec(lines[index - 1] ?? '') ?? []
    if (why === undefined) steps.push({ kind: 'sh', line, text: lines.slice(line, end).join('\n') })
    else steps.push({ kind: 'not_run', line, why })
    index = end
  }
  return steps
}
