// `npm run generate`: writes openapi.json and muster.schema.json, which are committed, so that a change of the contract is seen
// in review.
import { readFile, writeFile } from 'node:fs/promises'
import { openapiDocument } from './openapi.ts'
import { projectSchema } from './project-config.ts'

const package_file = new URL('../package.json', import.meta.url)
const { version } = JSON.parse(await readFile(package_file, 'utf8')) as { version: string }
const document = openapiDocument(version)
await writeFile(new URL('../openapi.json', import.meta.url), `${JSON.stringify(document, null, 2)}\n`)
await writeFile(new URL('../muster.schema.json', import.meta.url), `${JSON.stringify(projectSchema(), null, 2)}\n`)
