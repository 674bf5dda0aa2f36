// An import of `node:http` by a module reads all members of it. Three of them are getters that load Node's client of HTTP
// (undici), which takes 14 MB of each process and tens of milliseconds of its start. Bundled modules import the others from
// this module, and undici is loaded by the first `fetch`.
import http from 'node:http'
import type { Plugin } from 'rolldown'

const LOADS_UNDICI = ['WebSocket', 'CloseEvent', 'MessageEvent']
const ID = '\0http-members'

export function httpMembers(): Plugin {
  return {
    name: 'http-members',
    resolveId(specifier, _importer, { kind }) {
      // A `require` reads no member.
      return /^(node:)?http$/.test(specifier) && kind === 'import-statement' ? ID : null
    },
    load(id) {
      if (id !== ID) return null
      const names = Object.keys(http).filter((name) => !LOADS_UNDICI.includes(name))
      return [
        "const http = process.getBuiltinModule('node:http')",
        'export default http',
        `export const { ${names.join(', ')} } = http`,
      ].join('\n')
    },
  }
}
