// A part of `npm run generate`: writes docs/configuration.md from SETTINGS, the one list of settings that the program
// itself reads, so that the page cannot be behind it.
import { writeFile } from 'node:fs/promises'
import { SETTINGS } from '../server/src/config.ts'

const HEAD = `# Configuration

<!-- Written by \`npm run generate\` from server/src/config.ts; changes belong there. -->

Settings are environment variables, and none is needed: without any, the platform runs on this machine alone, with a PostgreSQL of its own.
All mistakes are reported at once, and the program ends with exit code 2. A name that begins with \`MUSTER_\` and is not a setting is a
mistake; the message names the setting that was probably meant. Mistakes in \`muster.toml\` are reported with line and column.

| setting | default | what it says |
| --- | --- | --- |
`

const TAIL = `
## Regions and tiers

\`muster.toml\` in the folder of the start (or where \`MUSTER_CONFIG\` says) has the regions in which lobbies run and the tiers in which they come. It need not
be there: then there is one region, \`local\`, with tiers from \`basic-4d1\` (four cores) to \`basic-1d16\`, as far as this machine has the cores, each with that part of 90 %
of its memory. All roles must read the same file; a change is taken up by a restart, and lobbies that run keep what they were given.

<!-- muster.toml -->
\`\`\`toml
currency = "EUR"                 # of prices

[[tiers]]                        # the largest first; without any, they are made of this machine
tier_name_id = "basic-1d1"
platform_cores_numerator = 1
platform_cores_denominator = 1
memory = 1838                    # MB; cpu (MHz), disk and bandwidth (MB) may follow

[[regions]]
name = "fra"
display_name = "Frankfurt"
provider_display_name = "Our rack"
latitude = 50.1
longitude = 8.7
driver = "process"
tiers = ["basic-1d1"]            # without: all
default_tier = "basic-1d1"       # of game modes that name none
cores = 8                        # what all lobbies of the region may use together; without: MUSTER_CAPACITY_CORES;
memory_mb = 14000                # 0: no limit
price_per_core_hour = 0.042      # what the bill of a group says beside the time; without: no price
\`\`\`

The mode is \`development\` while \`MUSTER_DOMAIN_MAIN\` is \`localhost\`, and \`production\` otherwise. In production the three domains must be three
different registrable domains, \`MUSTER_SANDBOX\` is \`required\` and can be nothing else, and the edge listens on all addresses; in development
it listens on this machine's loopback addresses only.

Under \`npm start\` the edge takes port 80 when it can have it and 8000 otherwise, and says so. A port that is set is used or the start fails.
HTTPS takes 443, or 8443 ([https.md](https.md)).

\`MUSTER_URL\` and \`MUSTER_TOKEN\` are not settings of the platform: programs that call it (\`npm run deploy -w arena\`) are told by them
where it is and who they are.
`

const rows = SETTINGS.map(({ name, default: otherwise, description }) => {
  const value = otherwise === '' ? '' : /^[\w./,:-]+$/.test(otherwise) ? `\`${otherwise}\`` : otherwise
  return `| \`${name}\` | ${value} | ${description} |\n`
})
await writeFile(new URL('../docs/configuration.md', import.meta.url), HEAD + rows.join('') + TAIL)
