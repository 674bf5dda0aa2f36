// Checks a muster.yaml without a platform: its YAML, its members, and whether its parts fit together. All mistakes are reported
// at once, each with its line, a sentence and a remedy. Only a platform knows its regions, tiers and ports.
import { existsSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { type ErrorDetail, gameModesOf, type VersionConfig } from '@musterhost/contract'
import { type JsonSchema, type ProjectConfig, projectSchema } from '@musterhost/contract/project-config'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { closestName } from '@musterhost/contract/suggestion'
import { checkVersionConfig } from '@musterhost/contract/version-check'
import { completeVersion } from './complete.ts'
import { type Position, type ProjectDocument, readDocument } from './document.ts'

/** One mistake of a file. Its members are named as in the API's errors. */
export type ProjectFault = Position & {
  path: string[]
  reason: string
  message: string
  /** What to do, or what the member means. */
  remedy: string
  /** The name that a misspelled one is closest to. */
  suggestion?: string
}

export type CheckedProject = { config: ProjectConfig | null; faults: ProjectFault[]; document: ProjectDocument }

/** Places that are named where a member stands at a wrong one. */
const PLACES_MAX = 2
/** Stands for the ids that a deploy adds. */
export const SOME_ID = '00000000-0000-0000-0000-000000000000'

/** `folder`: that of the file, in which its folders are. `config` is null when there is a fault. */
export function checkProjectText(text: string, folder: string): CheckedProject {
  const document = readDocument(text)
  if (document.faults.length > 0) return { config: null, faults: document.faults, document }
  const schema = projectSchema()
  const found = checkValue(document.value, schema, folder)
  const faults = found.map((detail) => explain(detail, schema, document))
  faults.sort((a, b) => a.line - b.line || a.column - b.column)
  return { config: faults.length === 0 ? (document.value as ProjectConfig) : null, faults, document }
}

function checkValue(value: unknown, schema: JsonSchema, folder: string): ErrorDetail[] {
  if (value === null || value === undefined) {
    return [{ path: [], reason: 'empty', message: 'The file is empty.' }]
  }
  const empty = emptyMembers(value)
  const empty_paths = new Set(empty.map(({ path }) => path.join('\n')))
  // The check removes empty members from the value, so it gets a copy.
  const { $schema: _draft, ...body } = schema
  const shape = createShapeCheck(body as never)(structuredClone(value))
  const errors = [...empty, ...shape.filter(({ path }) => !empty_paths.has(path.join('\n')))]
  return errors.length > 0 ? errors.map(ofTheFile) : checkParts(value as ProjectConfig, folder)
}

/** The schema check speaks of the body of a request. */
function ofTheFile(detail: ErrorDetail): ErrorDetail {
  return detail.path.length > 0 ? detail : { ...detail, message: detail.message.replace(/^The body/, 'The file') }
}

/** `name:` with nothing after it is null in YAML. Whether an empty section or no section was meant is not clear. */
function emptyMembers(value: unknown, path: string[] = []): ErrorDetail[] {
  if (value === null) return [{ path, reason: 'empty', message: `${path.join('.')} has no value.` }]
  if (typeof value !== 'object') return []
  return Object.entries(value as object).flatMap(([name, member]) => emptyMembers(member, [...path, name]))
}

function checkParts(config: ProjectConfig, folder: string): ErrorDetail[] {
  const errors: ErrorDetail[] = []
  if (config.matchmaker !== undefined && config.server === undefined && !isOfRegistry(config)) {
    const message =
      'The matchmaker section needs a server section: the files of the server that lobbies run. Or matchmaker.docker.image names an image of a registry.'
    errors.push({ path: ['matchmaker'], reason: 'needs_server', message })
  }
  if (config.server !== undefined && config.matchmaker === undefined) {
    const message = 'The server section needs a matchmaker section, which says how the server is started.'
    errors.push({ path: ['server'], reason: 'needs_matchmaker', message })
  }
  if (config.cdn !== undefined && config.site === undefined) {
    const message = 'The cdn section needs a site section: the files of the page.'
    errors.push({ path: ['cdn'], reason: 'needs_site', message })
  }
  for (const part of ['server', 'site'] as const) {
    const section = config[part]
    if (section === undefined) continue
    const image = 'image' in section ? section.image : undefined
    errors.push(...(image === undefined ? checkFolder(section, part, folder) : checkImage(section, image, folder)))
  }
  const has_site = config.site !== undefined || config.cdn !== undefined
  const version = completeVersion(versionOf(config), {
    build_id: config.server === undefined && isOfRegistry(config) ? null : SOME_ID,
    site_id: has_site ? SOME_ID : null,
  })
  // Only the platform reads whether an image names a program.
  const images = new Set(config.server?.image === undefined ? [] : [SOME_ID])
  return [...errors, ...checkVersionConfig(null, version, images)]
}

/** Whether every game mode runs an image of a registry, so that no file of the server is sent. */
function isOfRegistry(config: ProjectConfig): boolean {
  return [...gameModesOf(versionOf(config)).values()].every(({ registry_image }) => registry_image !== null)
}

/** The members of the file that are sent to the platform. */
export function versionOf({ kv, cdn, matchmaker }: ProjectConfig): VersionConfig {
  return {
    ...(kv === undefined ? {} : { kv }),
    ...(cdn === undefined ? {} : { cdn }),
    ...(matchmaker === undefined ? {} : { matchmaker }),
  }
}

/** An image that does not exist may be created by the build command. */
function checkImage(
  section: { folder?: string; build?: string; ignore?: readonly string[] },
  image: string,
  folder: string,
): ErrorDetail[] {
  const path = ['server', 'image']
  const errors = (['folder', 'ignore'] as const).flatMap((name): ErrorDetail[] => {
    if (section[name] === undefined) return []
    const message = `server.image and server.${name} exclude each other: the image is the whole server.`
    return [{ path: ['server', name], reason: 'conflicts', message }]
  })
  const target = resolve(folder, image)
  if (!isInside(folder, target)) {
    return [
      ...errors,
      { path, reason: 'outside', message: `The image ${image} is outside of the folder of this file.` },
    ]
  }
  if (existsSync(target)) {
    if (!statSync(target).isDirectory() || existsSync(join(target, 'oci-layout'))) return errors
    const message = `The folder ${image} is no OCI image layout: it has no file oci-layout.`
    return [...errors, { path, reason: 'not_an_image', message }]
  }
  if (section.build !== undefined) return errors
  return [...errors, { path, reason: 'not_found', message: `There is no image ${image}.` }]
}

function isInside(folder: string, target: string): boolean {
  const inside = relative(folder, target)
  return inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)
}

/** A folder that does not exist may be created by the build command. */
function checkFolder(section: { folder?: string; build?: string }, part: string, folder: string): ErrorDetail[] {
  const { folder: name = '.', build } = section
  const path = [part, ...(section.folder === undefined ? [] : ['folder'])]
  const target = resolve(folder, name)
  if (!isInside(folder, target)) {
    const message = `The folder ${name} is outside of the folder of this file.`
    return [{ path, reason: 'outside', message }]
  }
  if (!existsSync(target)) {
    if (build !== undefined) return []
    return [{ path, reason: 'not_found', message: `There is no folder ${name}.` }]
  }
  return statSync(target).isDirectory() ? [] : [{ path, reason: 'not_a_folder', message: `${name} is not a folder.` }]
}

/** Adds where the mistake is, and what to do. */
function explain(detail: ErrorDetail, schema: JsonSchema, { positions }: ProjectDocument): ProjectFault {
  const { path, reason } = detail
  const has_name = ['unknown', 'required', 'empty'].includes(reason)
  const position = has_name ? positions.of(path) : positions.ofValue(path)
  const suggestion = suggestionFor(path, reason, schema)
  return { ...detail, ...position, remedy: remedyFor(detail, schema), ...(suggestion === null ? {} : { suggestion }) }
}

function suggestionFor(path: readonly string[], reason: string, schema: JsonSchema): string | null {
  if (reason !== 'unknown') return null
  return closestName(path.at(-1) ?? '', Object.keys(schemaAt(path.slice(0, -1), schema)?.properties ?? {}))
}

function remedyFor({ path, reason, message }: ErrorDetail, schema: JsonSchema): string {
  const name = path.at(-1) ?? ''
  const member = schemaAt(path, schema)
  switch (reason) {
    case 'unknown':
      return unknownRemedy(path, schema)
    case 'empty':
      return member?.type === 'object'
        ? `Write ${name}: {} for an empty section, or remove the line.`
        : 'Give it a value, or remove the line.'
    case 'wrong_type':
      if (member?.type === 'string' && !/object|array/.test(message)) return `Put the value of ${name} in quotes.`
      break
    case 'needs_server':
      return 'Add server: { folder: server }.'
    case 'needs_site':
      return 'Add site: { folder: site }.'
    case 'needs_matchmaker':
      return 'Add matchmaker with game_modes and docker.args, or remove the server section.'
    case 'not_an_image':
      return 'Write one, for example: buildah push IMAGE oci:FOLDER'
    case 'outside':
      return 'Move muster.yaml into the folder that contains both.'
  }
  return member?.description ?? 'docs/muster-yaml.md explains every member.'
}

function unknownRemedy(path: readonly string[], schema: JsonSchema): string {
  const name = path.at(-1) ?? ''
  if (name === 'image_id' || name === 'site_id') return 'Remove it: muster deploy fills it in.'
  const around = schemaAt(path.slice(0, -1), schema)
  const [pattern] = Object.keys(around?.patternProperties ?? {})
  const elsewhere = pathsOf(name, schema)
  if (elsewhere.length > 0) return `It belongs at another place: ${elsewhere.slice(0, PLACES_MAX).join(' or ')}.`
  if (pattern !== undefined) return `Names here match ${pattern}.`
  return `Members here: ${Object.keys(around?.properties ?? {}).join(', ')}.`
}

/** Where the schema has a member of this name. `NAME` stands for a name of the project's own. */
function pathsOf(name: string, schema: JsonSchema, path: readonly string[] = []): string[] {
  const own = Object.keys(schema.properties ?? {}).includes(name) ? [[...path, name].join('.')] : []
  const named = Object.entries(schema.properties ?? {}).flatMap(([step, member]) =>
    pathsOf(name, member, [...path, step]),
  )
  const mapped = Object.values(schema.patternProperties ?? {}).flatMap((member) =>
    pathsOf(name, member, [...path, 'NAME']),
  )
  return [...own, ...named, ...mapped]
}

function schemaAt(path: readonly string[], schema: JsonSchema): JsonSchema | null {
  let at: JsonSchema | undefined = schema
  for (const step of path) {
    const [mapped]: (JsonSchema | undefined)[] = Object.values(at.patternProperties ?? {})
    const named: JsonSchema | undefined = Object.hasOwn(at.properties ?? {}, step) ? at.properties?.[step] : undefined
    at = named ?? mapped ?? at.items
    if (at === undefined) return null
  }
  return at
}
