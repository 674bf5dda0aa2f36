// A part of `npm run generate`: writes the version of the root into the workspaces and the lock file.
import { join } from 'node:path'
import { writeVersions } from './release/versions.ts'

for (const path of writeVersions(join(import.meta.dirname, '..'))) console.log(`${path} has the version of the root.`)
