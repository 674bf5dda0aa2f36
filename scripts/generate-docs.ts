// A part of `npm run generate`: writes the generated parts of three pages. The settings are those that the program itself
// reads, the limits are the constants of the code, and the members of muster.yaml are those of its schema. So no page can be out of
// date.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type JsonSchema, projectSchema } from '../contract/src/project-config.ts'
import { SETTING_NAMES, SETTINGS, type Setting } from '../server/src/config/settings.ts'
import { writeCommandPages } from './command-pages.ts'
import { type Limit, readLimits } from './limits.ts'

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

function limitsTables(limits: readonly Limit[]): string {
  const tables: string[] = []
  for (const folder of new Set(limits.map((limit) => limit.folder))) {
    const rows = limits
      .filter((limit) => limit.folder === folder)
      .map(({ name, value, file, description }) => `| \`${name}\` | ${value} | ${cell(description)} | ${file} |\n`)
    tables.push(
      `### ${folder}\n\n| constant | value | what it limits | file |\n| --- | --- | --- | --- |\n${rows.join('')}`,
    )
  }
  return tables.join('\n')
}

/** Every member of muster.yaml by its path. `NAME` stands for a name that the file chooses, `[]` for each entry of a list. */
function membersTable(): string {
  const rows = membersOf(projectSchema(), '').map(
    ({ path, schema }) => `| \`${path}\` | ${typeOf(schema)} | ${cell(schema.description ?? '')} |\n`,
  )
  return `| member | type | meaning |\n| --- | --- | --- |\n${rows.join('')}`
}

function membersOf(schema: JsonSchema, path: string): { path: string; schema: JsonSchema }[] {
  const named = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const own = path === '' ? name : `${path}.${name}`
    return [{ path: own, schema: member }, ...membersOf(member, own)]
  })
  const mapped = Object.values(schema.patternProperties ?? {}).flatMap((value) => membersOf(value, `${path}.NAME`))
  return [...named, ...mapped, ...(schema.items === undefined ? [] : membersOf(schema.items, `${path}[]`))]
}

function typeOf({ type, enum: values, minimum, maximum, patternProperties }: JsonSchema): string {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ')
  if (type === 'integer') return `${minimum ?? ''} to ${maximum ?? ''}`
  return type === 'object' && patternProperties !== undefined ? 'map' : (type ?? '')
}

/** A comment in a cell: a bar would end the cell, and `<` would begin a tag. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}

await writePart('docs/README.md', 'commands', await writeCommandPages(ROOT))
await writePart('docs/configuration.md', 'settings', settingsTable())
await writePart('docs/muster-yaml.md', 'members', membersTable())
const limits = await readLimits(ROOT)
await writePart('docs/design/constants.md', 'limits', limitsTables(limits))
const undescribed = limits.filter(({ description }) => description === '')
if (undescribed.length > 0) {
  console.error(`${undescribed.length} of ${limits.length} limits have no comment that describes them:`)
  for (const { folder, file, name } of undescribed) console.error(`  ${folder}/${file} ${name}`)
}
