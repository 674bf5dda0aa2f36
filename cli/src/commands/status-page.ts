// Commands on the status page of a game.
import { STATUS_IMPACTS, STATUS_INCIDENT_STATES } from '@musterhost/contract'
import { type Command, Option } from 'commander'
import type { RemovalOptions } from '../manage/removal.ts'
import type { IncidentOptions, StatusPageOptions, UpdateOptions } from '../manage/status-page.ts'
import { type GlobalOptions, withGame, withNamespace } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { withRemoval } from './games.ts'

export function addStatusPageCommands(program: Command, terminal: Terminal): void {
  const load = () => import('../manage/status-page.ts')
  const page = program
    .command('status-page')
    .description('The status page of a game: whether players get into games, and incidents.')
  withGame(page.command('show', { isDefault: true }))
    .description('Show the settings of the page, and what it shows now.')
    .action(async (options: GlobalOptions) => (await load()).showPage(terminal, options))
  withNamespace(page.command('on'))
    .description('Serve the page at /status of the site, or change its settings. What is not named stays.')
    .option('--title <text>', 'title of the page; an empty one: Status of and the name of the game')
    .option('--text <text>', 'text below the title')
    .option('--domain <domain>', 'domain of the namespace that serves only the page')
    .option('--no-domain', 'at /status of the site again')
    .action(async (options: StatusPageOptions) => (await load()).enablePage(terminal, options))
  withGame(page.command('off'))
    .description('Serve the page no longer. Settings and incidents stay.')
    .action(async (options: GlobalOptions) => (await load()).disablePage(terminal, options))
  withGame(page.command('incidents'))
    .description('List the incidents, open ones first.')
    .action(async (options: GlobalOptions) => (await load()).listIncidents(terminal, options))
  withGame(page.command('report'))
    .description('Write an incident. The page shows it at once.')
    .argument('<title>', 'for example "Games in Frankfurt start slowly"')
    .addOption(impactOption().default('minor'))
    .addOption(stateOption().default('investigating'))
    .requiredOption('--text <text>', 'what players should know')
    .action(async (title: string, options: IncidentOptions) => (await load()).reportIncident(terminal, title, options))
  withGame(page.command('update'))
    .description('Write an update of an incident.')
    .argument('<incident-id>', 'as status-page incidents shows it')
    .addOption(stateOption().makeOptionMandatory())
    .addOption(impactOption())
    .requiredOption('--text <text>', 'what is new')
    .option('--title <text>', 'new title of the incident')
    .action(async (incident_id: string, options: UpdateOptions) =>
      (await load()).updateIncident(terminal, incident_id, options),
    )
  withGame(page.command('resolve'))
    .description('Write that an incident is over.')
    .argument('<incident-id>', 'as status-page incidents shows it')
    .option('--text <text>', 'what was wrong', 'The incident is over.')
    .action(async (incident_id: string, options: GlobalOptions & { text: string }) =>
      (await load()).updateIncident(terminal, incident_id, { ...options, state: 'resolved' }),
    )
  withRemoval(withGame(page.command('delete')))
    .description('Delete an incident with its updates, also from the page.')
    .argument('<incident-id>', 'as status-page incidents shows it')
    .action(async (incident_id: string, options: GlobalOptions & RemovalOptions) =>
      (await load()).deleteIncident(terminal, incident_id, options),
    )
}

function impactOption(): Option {
  return new Option('--impact <impact>', 'what players notice').choices(STATUS_IMPACTS)
}

function stateOption(): Option {
  return new Option('--state <state>', 'what is known').choices(STATUS_INCIDENT_STATES)
}
