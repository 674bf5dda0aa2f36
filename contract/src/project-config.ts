// muster.yaml: the version config of a game and the command line's own members. The file leaves out the ids of the build and of
// the site: `muster deploy` adds them.
import Type, { type Static } from 'typebox'
import { described, NameId, object } from './records.ts'
import { VersionConfig } from './version-config.ts'

/** Patterns of one list. */
const IGNORE_MAX = 256

const build = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 4096,
    description:
      'Shell command that runs in the folder of this file before each deploy. Default: none. Example: `npm install --prefix server`.',
  }),
)

const folderMembers = (example: string) => ({
  folder: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1024,
      description: `Folder whose files are sent, relative to this file and inside its folder. Default \`.\`. Example: \`${example}\`.`,
    }),
  ),
  build,
  ignore: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
      maxItems: IGNORE_MAX,
      description:
        'Files that are not sent, as patterns of .gitignore, at most 256. `.git`, `.muster` and `.env` are never sent. Example: `["*.test.js", "notes/"]`.',
    }),
  ),
})

/** Members of muster.yaml that are not sent to the platform. */
const OwnMembers = object({
  $schema: Type.Optional(
    Type.String({ maxLength: 2048, description: 'Schema of this file, for editors. Example: `./muster.schema.json`.' }),
  ),
  game: Type.Optional(
    described(
      NameId,
      'Name of the game: its `name_id`, which is a part of the address of its page. At most 16 lower-case letters and digits, with single dashes in between. Default: the option `--game`. Example: `dots`.',
    ),
  ),
  namespace: Type.Optional(
    described(NameId, 'Namespace that a deploy changes: its `name_id`. Default `prod`. Example: `staging`.'),
  ),
  url: Type.Optional(
    Type.String({
      pattern: '^https?://[^\\s/]+/?$',
      maxLength: 2048,
      description:
        'Address of the platform. Default: the current context, which `muster login` sets. `MUSTER_TOKEN` is not sent to an address that only this file names. Example: `https://play.example.org`.',
    }),
  ),
  server: Type.Optional(
    object(
      {
        ...folderMembers('server'),
        image: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 1024,
            description:
              'Container image that is sent instead of a folder: the output of `docker save`, or an OCI image layout as a tar or a folder. A tar may be plain, gzip or zstd. Relative to this file and inside its folder. Example: `game.tar.zst`.',
          }),
        ),
      },
      'Files of the game server, which become the build of the version. Required when the file has a `matchmaker` section.',
    ),
  ),
  site: Type.Optional(
    object(folderMembers('site'), 'Files of the web page, which become the site of the version. Default: no page.'),
  ),
})
export type ProjectOwnMembers = Static<typeof OwnMembers>
/** The content of a muster.yaml without mistakes. */
export type ProjectConfig = ProjectOwnMembers & VersionConfig

/** JSON Schema as far as this project uses it. */
export type JsonSchema = {
  $schema?: string
  title?: string
  type?: string
  description?: string
  enum?: readonly unknown[]
  pattern?: string
  minimum?: number
  maximum?: number
  required?: string[]
  properties?: Record<string, JsonSchema>
  patternProperties?: Record<string, JsonSchema>
  items?: JsonSchema
  additionalProperties?: boolean
}

/** Members that the platform or `muster deploy` fills in. */
const FILLED_IN: ReadonlySet<string> = new Set(['image_id', 'site_id'])
/** The description of the version config speaks of members that the file does not have. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  cdn: 'How the page is served. Default: as it is, when the file has a `site` section.',
}

/** Editors read draft 7. */
const DRAFT = 'http://json-schema.org/draft-07/schema#'

/** The schema of muster.yaml. */
export function projectSchema(): JsonSchema {
  const own = toJson(OwnMembers)
  const version = withoutFilledIn(toJson(VersionConfig))
  const properties = { ...own.properties, ...version.properties }
  for (const [name, description] of Object.entries(DESCRIPTIONS))
    properties[name] = { ...properties[name], description }
  return {
    $schema: DRAFT,
    title: 'muster.yaml',
    description: 'A game for Muster: its folders, and how its lobbies and its page are served.',
    type: 'object',
    properties,
    additionalProperties: false,
  }
}

function toJson(schema: object): JsonSchema {
  return JSON.parse(JSON.stringify(schema)) as JsonSchema
}

function withoutFilledIn(schema: JsonSchema): JsonSchema {
  const result = { ...schema }
  if (schema.properties !== undefined) {
    const members = Object.entries(schema.properties).filter(([name]) => !FILLED_IN.has(name))
    result.properties = Object.fromEntries(members.map(([name, member]) => [name, withoutFilledIn(member)]))
  }
  if (schema.patternProperties !== undefined) {
    const values = Object.entries(schema.patternProperties)
    result.patternProperties = Object.fromEntries(values.map(([pattern, value]) => [pattern, withoutFilledIn(value)]))
  }
  if (schema.items !== undefined) result.items = withoutFilledIn(schema.items)
  return result
}
