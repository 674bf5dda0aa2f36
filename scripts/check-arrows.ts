// `node scripts/check-arrows.ts [FOLDER]`, a part of `npm run check`: checks the imports of this repository, or of a copy in
// FOLDER, by arrows/rules.ts. It also checks where clocks, randomness and the environment are read, and that each exported
// type has a name of its own. It prints how much was read and every fault, and exits with 1 when there is a fault.
import { resolve } from 'node:path'
import { circlesOf, faultsInside, readBoxes } from './arrows/boxes.ts'
import {
  type Import,
  readSources,
  readWorkspaces,
  type SourceFile,
  UNKNOWN_FILE,
  type Workspace,
} from './arrows/read.ts'
import {
  ARROWS,
  FILE_ARROWS,
  FILES_MIN,
  IMPORTS_MIN,
  IMPURE_WORDS,
  INSIDE,
  PURE,
  TEST_SUPPORT,
  UNIQUE_TYPES,
  UNREADABLE,
  WORDS,
} from './arrows/rules.ts'

/** The folder of a room of the server, at the beginning of a path. */
const ROOM_OF_SERVER = /^server\/src\/[^/]+(?=\/)/

/** Not `export type { ... }`, which exports a type of another file. */
const EXPORTED_TYPE = /^export (?:default )?(?:declare )?(?:abstract )?(?:type|interface|class|(?:const )?enum) (\w+)/

/** Lines of the rules that some file uses. The others are out of date. */
type Used = Set<object | string>

const { files, imports, faults } = checkArrows(resolve(process.argv[2] ?? resolve(import.meta.dirname, '..')))
console.log(`Arrows: ${imports} imports of ${files} files read.`)
for (const fault of faults) console.error(fault)
if (faults.length > 0) {
  console.error(
    `${faults.length} arrow(s), word(s) or name(s) where they may not be; scripts/arrows/rules.ts has the rules.`,
  )
  process.exitCode = 1
}

function checkArrows(root: string): { files: number; imports: number; faults: string[] } {
  const workspaces = readWorkspaces(root)
  const sources = readSources(root, workspaces)
  const imports = sources.reduce((sum, source) => sum + source.imports.length, 0)
  const used: Used = new Set()
  const faults = sources
    .filter(({ path }) => !isTest(path))
    .flatMap((source) => [
      ...source.imports.flatMap((item) => faultOfImport(source, item, workspaces, used) ?? []),
      ...faultsOfWords(source, used),
      ...faultsOfPurity(source),
    ])
  if (sources.length < FILES_MIN || imports < IMPORTS_MIN) {
    faults.push(`Only ${imports} imports of ${sources.length} files were found: the reading is at fault.`)
  }
  return {
    files: sources.length,
    imports,
    faults: [
      ...faults,
      ...faultsOfRooms(sources),
      ...faultsOfCircles(sources),
      ...faultsOfTypeNames(sources),
      ...outOfDate(sources, used),
    ],
  }
}

function faultsOfRooms(sources: readonly SourceFile[]): string[] {
  const own = sources.filter(({ path }) => !isTest(path))
  const rooms = new Set(own.flatMap(({ path }) => ROOM_OF_SERVER.exec(path)?.[0] ?? []))
  return [
    ...Object.entries(INSIDE).flatMap(([room, picture]) => faultsInside(room, picture, own)),
    ...[...rooms].flatMap((room) =>
      circlesOf(readBoxes(room, own)).map((boxes) => `${boxes.join(', ')} of ${room} are a circle.`),
    ),
  ]
}

/** Files that import each other, also by types only. A type is defined one floor below its users. */
function faultsOfCircles(sources: readonly SourceFile[]): string[] {
  const own = sources.filter(({ path }) => !isTest(path))
  const arrows = new Map(
    own.flatMap(({ path, imports }) => imports.map(({ file }): [string, null] => [`${path} -> ${file}`, null])),
  )
  return circlesOf({ boxes: own.map(({ path }) => path), arrows }).map((files) => `${files.join(', ')} are a circle.`)
}

/** A reader who meets the name of a type in one file must know it in all. */
function faultsOfTypeNames(sources: readonly SourceFile[]): string[] {
  const first = new Map<string, string>()
  return sources
    .filter(({ path }) => !isTest(path) && UNIQUE_TYPES.some((folder) => path.startsWith(folder)))
    .flatMap((source) =>
      source.lines.flatMap((text, index) => {
        const name = EXPORTED_TYPE.exec(text)?.[1]
        if (name === undefined) return []
        const path = first.get(name) ?? source.path
        first.set(name, path)
        return path === source.path ? [] : [at(source, index + 1, `${path} exports a type ${name} too.`)]
      }),
    )
}

function faultOfImport(source: SourceFile, item: Import, workspaces: readonly Workspace[], used: Used): string | null {
  const from = partOf(source.path)
  const allowed = ARROWS[from]
  if (allowed === undefined) return at(source, item.line, `"${from}" has no line in ARROWS.`)
  used.add(from)
  if (item.file === UNKNOWN_FILE) {
    const exception = UNREADABLE.find(({ file }) => file === source.path)
    if (exception === undefined) return at(source, item.line, `${item.specifier} leads nowhere that can be read.`)
    used.add(exception)
    return null
  }
  if (item.file === null) return faultOfPackage(source, item, workspaces)
  if (isTest(item.file)) return at(source, item.line, `${item.specifier} is a test, or there for tests only.`)
  const to = partOf(item.file)
  if (to === from || allowed.includes(to)) return crossesRelatively(source, item)
  const exception = FILE_ARROWS.find((arrow) => arrow.file === source.path && arrow.to === to)
  if (exception === undefined) return at(source, item.line, `${from} may not import ${to} (${item.specifier}).`)
  used.add(exception)
  return null
}

/** Game developers copy the arena, so it declares every package that it imports. */
function faultOfPackage(
  source: SourceFile,
  { specifier, line }: Import,
  workspaces: readonly Workspace[],
): string | null {
  if (specifier.startsWith('node:')) return null
  const workspace = workspaces.find(({ folder }) => source.path.startsWith(`${folder}/`))
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  if (workspace?.folder === 'sdk') return at(source, line, `sdk may import nothing but itself and Node (${specifier}).`)
  if (workspace === undefined || workspace.dependencies.has(name)) return null
  return at(source, line, `${name} is not among the dependencies of ${workspace.name}.`)
}

/** An import of another workspace uses the exports of its package.json. scripts/ is no workspace. */
function crossesRelatively(source: SourceFile, { specifier, line, file }: Import): string | null {
  const home = source.path.split('/')[0]
  if (!specifier.startsWith('.') || home === 'scripts' || file?.split('/')[0] === home) return null
  return at(source, line, `${specifier} leads into another workspace past its exports.`)
}

function faultsOfWords(source: SourceFile, used: Used): string[] {
  return WORDS.filter(({ within }) => within.some((folder) => source.path.startsWith(folder))).flatMap((rule) => {
    const exception = rule.allowed.find(({ file }) => file === source.path)
    return linesWith(source, rule.pattern).flatMap((line) => {
      if (exception === undefined) return [at(source, line, `${rule.name} is not read here. ${rule.why}`)]
      used.add(exception)
      return []
    })
  })
}

function faultsOfPurity(source: SourceFile): string[] {
  if (!isPure(source.path)) return []
  const arrows = source.imports
    .filter(({ is_type, file }) => !is_type && (file === null || !isPure(file)))
    .map(({ line, specifier }) => at(source, line, `a pure file imports only types and pure files (${specifier}).`))
  const words = linesWith(source, IMPURE_WORDS).map((line) => at(source, line, 'a pure file has no such word.'))
  return [...arrows, ...words]
}

function linesWith({ lines }: SourceFile, pattern: RegExp): number[] {
  return lines.flatMap((text, index) => (!/^\s*(\/\/|\/?\*)/.test(text) && pattern.test(text) ? [index + 1] : []))
}

/** Rules for files that do not exist, and exceptions that no file needs. */
function outOfDate(sources: readonly SourceFile[], used: Used): string[] {
  const exceptions = [...FILE_ARROWS, ...UNREADABLE, ...WORDS.flatMap(({ allowed }) => allowed)]
  const parts = new Set(sources.map(({ path }) => partOf(path)))
  return [
    ...exceptions
      .filter((exception) => !used.has(exception))
      .map(({ file }) => `rules.ts: the exception for ${file} is not needed.`),
    ...[...PURE, ...TEST_SUPPORT, ...UNIQUE_TYPES]
      .filter((path) => !sources.some((source) => source.path.startsWith(path)))
      .map((path) => `rules.ts: there is no ${path}.`),
    ...Object.keys(ARROWS)
      .filter((part) => !parts.has(part))
      .map((part) => `rules.ts: there is no "${part}".`),
  ]
}

/** A path of PURE is a file, or a folder with everything below it. */
function isPure(path: string): boolean {
  return !isTest(path) && PURE.some((pure) => path.startsWith(pure))
}

function isTest(path: string): boolean {
  return (
    path.startsWith('server/test/') ||
    path.startsWith('cli/test/') ||
    path.startsWith('hub/test/') ||
    path.startsWith('hub/screenshots/') ||
    /\.test\.[a-z]+$/.test(path) ||
    (TEST_SUPPORT as readonly string[]).includes(path)
  )
}

/** The part of server/src/http/auth.ts is "http", of server/src/main.ts "main", of examples/arena/... "examples/arena". */
function partOf(path: string): string {
  const [first, second = '', third = '', ...more] = path.split('/')
  if (first === 'examples') return `${first}/${second}`
  if (first !== 'server') return first!
  return more.length === 0 ? third.replace(/\.ts$/, '') : third
}

function at({ path }: SourceFile, line: number, what: string): string {
  return `${path}:${line} ${what}`
}
