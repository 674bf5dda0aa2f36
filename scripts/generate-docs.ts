// A part of `npm run generate`: writes the generated part of docs/configuration.md. The settings are those that the
// program itself reads, so the page cannot be out of date.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { SETTING_NAMES, SETTINGS, type Setting } from '../server/src/config/settings.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Replaces the text between the two comments that name the generated part. The rest of a page is written by hand. */
async function writePart(page: string, part: string, text: string): Promise<void> {
  const begin = `<!-- generated: ${part} -->`
  const end = `<!-- end of generated: ${part} -->`
  const old = await readFile(`${ROOT}${page}`, 'utf8')
  const [before, rest] = old.split(begin)
  const after = rest?.split(end)[1]
  if (after === undefined) throw new Error(`${page} has no part ${begin} ... ${end}`)
  await writeFile(`${ROOT}${page}`, `${before}${begin}\n\n${text}\n${end}${after}`)
}

function settingsTable(): string {
  const rows = SETTING_NAMES.map((name) => {
    const setting: Setting = SETTINGS[name]
    return `| \`${name}\` | ${defaultOf(setting)} | ${setting.doc} |\n`
  })
  return `| setting | default | meaning |\n| --- | --- | --- |\n${rows.join('')}`
}

/** A value stands as code, a sentence as it is. */
function defaultOf({ default: value, default_doc }: Setting): string {
  if (default_doc !== undefined) return default_doc
  return value === null || value === '' ? '' : `\`${value}\``
}

await writePart('docs/configuration.md', 'settings', settingsTable())
