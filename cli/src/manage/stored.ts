// What was uploaded to a game: builds, which lobbies run, and sites, which browsers load.
import { deleteGameBuild, deleteGameCdnSite, listGameBuilds, listGameCdnSites } from '@musterhost/contract'
import { didYouMean } from '@musterhost/contract/suggestion'
import { Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { sizeText } from '../progress.ts'
import { openSession } from '../session.ts'
import { printTable, type TableColumn } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

type Stored = { display_name: string; create_ts: string; content_length: number; complete: boolean }

export async function listBuilds(terminal: Terminal, options: GlobalOptions & { tag?: string[] }): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const query = options.tag === undefined ? {} : { tags: options.tag }
  const response = await session.client.call(listGameBuilds, { params: { game_id }, query })
  terminal.note(`Builds of ${name_id} at ${session.url}`)
  if (terminal.is_json) return terminal.json(response)
  printTable(
    terminal,
    response.builds,
    [
      ...columns<(typeof response.builds)[number]>(terminal),
      { title: 'ID', text: ({ build_id }) => build_id, is_whole: true },
    ],
    'The game has no build. Upload one: muster deploy',
  )
}

export async function listSites(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const response = await session.client.call(listGameCdnSites, { params: { game_id } })
  terminal.note(`Sites of ${name_id} at ${session.url}`)
  if (terminal.is_json) return terminal.json(response)
  printTable(
    terminal,
    response.sites,
    [
      ...columns<(typeof response.sites)[number]>(terminal),
      { title: 'ID', text: ({ site_id }) => site_id, is_whole: true },
    ],
    'The game has no site. Upload one: muster deploy',
  )
}

export async function removeBuild(
  terminal: Terminal,
  wanted: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const { builds } = await session.client.call(listGameBuilds, { params: { game_id } })
  const build_id = idOf(
    'build',
    wanted,
    builds.map((build) => ({ ...build, id: build.build_id })),
  )
  await confirmRemoval(terminal, `Delete the build ${wanted} of ${name_id} at ${session.url}?`, options)
  await session.client.call(deleteGameBuild, { params: { game_id, build_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the build ${wanted}.`)
}

export async function removeSite(
  terminal: Terminal,
  wanted: string,
  options: GlobalOptions & RemovalOptions,
): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const { sites } = await session.client.call(listGameCdnSites, { params: { game_id } })
  const site_id = idOf(
    'site',
    wanted,
    sites.map((site) => ({ ...site, id: site.site_id })),
  )
  await confirmRemoval(terminal, `Delete the site ${wanted} of ${name_id} at ${session.url}?`, options)
  await session.client.call(deleteGameCdnSite, { params: { game_id, site_id } })
  if (terminal.is_json) return terminal.json({})
  terminal.note(`Deleted the site ${wanted}.`)
}

function columns<Row extends Stored>(terminal: Terminal): TableColumn<Row>[] {
  return [
    { title: 'NAME', text: ({ display_name }) => display_name },
    { title: 'SIZE', text: ({ content_length }) => sizeText(content_length), align: 'right' },
    { title: 'STATE', text: ({ complete }) => (complete ? 'complete' : 'uploading') },
    { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
  ]
}

function idOf(kind: string, wanted: string, list: readonly (Stored & { id: string })[]): string {
  const [only, ...others] = list.filter(({ id, display_name }) => id === wanted || display_name === wanted)
  if (only !== undefined && others.length === 0) return only.id
  if (only !== undefined)
    throw new Failure(`Several have the name ${wanted}.`, { remedy: `Give the id: muster ${kind}s list` })
  const names = list.map(({ display_name }) => display_name)
  throw new Failure(`The game has no ${kind} ${wanted}.${didYouMean(wanted, names)}`, {
    remedy: `See all: muster ${kind}s list`,
  })
}
