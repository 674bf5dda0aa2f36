// Log-in by device link or by token. The platform is asked who the token belongs to before it is stored.
import { hostname } from 'node:os'
import {
  type ApiError,
  getDeviceLink,
  getGameById,
  inspectAuth,
  prepareDeviceLink,
  type ResponseOf,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { nameOf, normalUrl, readPlatforms, requireContextName, writePlatforms } from '../platforms.ts'
import { readProjectAddress } from '../project/address.ts'
import { createCommandClient, openSession } from '../session.ts'
import { printFields } from '../table.ts'
import type { Terminal } from '../terminal.ts'

export type LoginOptions = { url?: string; name?: string; tokenStdin?: boolean }
export type Agent = ResponseOf<typeof inspectAuth>['agent']

/** A device link is valid for an hour. */
const LINK_WAIT_MS_MAX = 60 * 60_000
/** Characters of the name of a machine, as the platform accepts them. */
const MACHINE_NAME_LENGTH_MAX = 64

export async function login(terminal: Terminal, options: LoginOptions): Promise<void> {
  const url = await chooseUrl(terminal, options)
  const name = options.name ?? nameOf(url)
  requireContextName(name)
  await requireFreeName(terminal, name, url)
  if (options.tokenStdin !== true && !terminal.is_interactive) {
    throw new Failure('Without a terminal there is nobody to confirm a link in the browser.', {
      exit_code: EXIT.usage,
      remedy: 'Give the option --token-stdin and the token on standard input, or set MUSTER_TOKEN.',
    })
  }
  terminal.note(`Logging in to ${url}`)
  const token = options.tokenStdin ? await terminal.readSecret('Token') : await confirmInBrowser(terminal, url)
  const { agent, who } = await inspect(terminal, url, token)
  const stored = await readPlatforms(terminal.env)
  stored.platforms[name] = { url, token }
  await writePlatforms(terminal.env, { ...stored, current: name })
  if (terminal.is_json) return terminal.json({ context: name, url, agent })
  terminal.note(`Logged in to ${url} as ${who}. The context ${name} is the current one.`)
  if (terminal.env.MUSTER_TOKEN) terminal.note('MUSTER_TOKEN is set, and is used instead of the token of the context.')
}

export async function whoami(terminal: Terminal, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { agent, who } = await inspect(terminal, session.url, session.token)
  if (terminal.is_json) return terminal.json({ url: session.url, agent })
  printFields(terminal, [
    ['platform', session.url],
    ['token from', session.origin],
    ['you are', who],
  ])
}

/** What the token proves. Throws when the platform refuses it. */
export async function inspect(terminal: Terminal, url: string, token: string): Promise<{ agent: Agent; who: string }> {
  const client = createCommandClient(url, token, terminal.signal)
  const { agent } = await client.call(inspectAuth, {})
  return { agent, who: await describeAgent(client, agent) }
}

async function describeAgent(client: Client, agent: Agent): Promise<string> {
  if (agent.access_token !== undefined) return `an administrator (token ${agent.access_token.name})`
  if (agent.game_cloud !== undefined) {
    const { game } = await client.call(getGameById, { params: { game_id: agent.game_cloud.game_id } })
    return `a program of the game ${game.name_id} (cloud token)`
  }
  return `the user ${agent.identity?.identity_id ?? ''}`
}

/** A token is not sent to an address that only muster.yaml names. */
async function chooseUrl(terminal: Terminal, { url, tokenStdin }: LoginOptions): Promise<string> {
  if (url !== undefined) return normalUrl(url, '--url')
  if (terminal.env.MUSTER_URL) return normalUrl(terminal.env.MUSTER_URL, 'MUSTER_URL')
  const project = readProjectAddress(terminal.cwd)
  if (project?.url !== undefined) {
    const named = normalUrl(project.url, `url of ${project.file}`)
    if (tokenStdin !== true) return named
    throw new Failure(`The token is not sent to ${named}: only ${project.file} names this address.`, {
      exit_code: EXIT.usage,
      remedy: `If you trust it, say so: --url ${named}`,
    })
  }
  return normalUrl(await terminal.ask('Address of the platform:', '--url URL'), 'The answer')
}

async function requireFreeName({ env }: Terminal, name: string, url: string): Promise<void> {
  const { platforms } = await readPlatforms(env)
  const other = Object.hasOwn(platforms, name) ? platforms[name] : undefined
  if (other === undefined || other.url === url) return
  throw new Failure(`The context ${name} is of another platform, ${other.url}.`, {
    exit_code: EXIT.usage,
    remedy: `Choose another name with --name, or remove it: muster context remove ${name}`,
  })
}

/** The name of this machine, which the page shows to the person. Empty without a name that the platform accepts. */
export function machineName(host: string): { name?: string } {
  const name = host
    .split(/[^\w.]+/)
    .filter((part) => part !== '')
    .join('-')
    .slice(0, MACHINE_NAME_LENGTH_MAX)
  return name === '' ? {} : { name }
}

/** Shows a link, and waits until a person confirms it. */
async function confirmInBrowser(terminal: Terminal, url: string): Promise<string> {
  const client = createCommandClient(url, undefined, terminal.signal)
  const { device_link_id, device_link_token, device_link_url } = await client.call(prepareDeviceLink, {
    body: machineName(hostname()),
  })
  terminal.note('Open this page, check that it shows the same number, and choose a game:')
  terminal.note(`  ${device_link_url}`)
  terminal.note(`  number …${device_link_id.slice(-8)}`)
  const deadline_ms = performance.now() + LINK_WAIT_MS_MAX
  let watch_index: string = 'pending'
  while (performance.now() < deadline_ms) {
    const link = await client
      .call(getDeviceLink, { query: { device_link_token, watch_index } })
      .catch((error: unknown) => {
        throw (error as ApiError).code === 'CLOUD_DEVICE_LINK_INVALID' ? refusedLink(error as ApiError) : error
      })
    if (link.cloud_token !== undefined) return link.cloud_token
    watch_index = link.watch.index
  }
  throw new Failure('Nobody confirmed the link within an hour.', { exit_code: EXIT.timed_out })
}

function refusedLink(error: ApiError): Failure {
  return new Failure('The link was refused, or has expired.', {
    exit_code: EXIT.not_allowed,
    remedy: 'For a new link, run the command again.',
    ...(error.ray_id === undefined ? {} : { ray_id: error.ray_id }),
    cause: error,
  })
}
