// The stored contexts: list, choose, add and remove them. A token is never printed.
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'
import { normalUrl, type Platforms, readPlatforms, requireContextName, writePlatforms } from '../platforms.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { inspect } from './login.ts'

export async function listContexts(terminal: Terminal): Promise<void> {
  const { current, platforms } = await readPlatforms(terminal.env)
  const contexts = Object.entries(platforms).map(([name, { url }]) => ({ name, url, is_current: name === current }))
  if (terminal.is_json) return terminal.json({ contexts })
  printTable(
    terminal,
    contexts,
    [
      { title: '', text: ({ is_current }) => (is_current ? '*' : '') },
      { title: 'CONTEXT', text: ({ name }) => name },
      { title: 'PLATFORM', text: ({ url }) => url, is_whole: true },
    ],
    'You are logged in to no platform. Log in: muster login --url URL',
  )
}

export async function useContext(terminal: Terminal, name: string): Promise<void> {
  const stored = await readPlatforms(terminal.env)
  const { url } = requireContext(stored, name)
  await writePlatforms(terminal.env, { ...stored, current: name })
  if (terminal.is_json) return terminal.json({ name, url, is_current: true })
  terminal.note(`The context ${name} is the current one: ${url}`)
}

export async function addContext(terminal: Terminal, given: { name: string; url: string }): Promise<void> {
  const url = normalUrl(given.url, '--url')
  const { name } = given
  requireContextName(name)
  const before = await readPlatforms(terminal.env)
  if (Object.hasOwn(before.platforms, name)) {
    throw new Failure(`There is a context ${name} already.`, { remedy: `Remove it: muster context remove ${name}` })
  }
  const token = await terminal.readSecret('Token')
  const { agent, who } = await inspect(terminal, url, token)
  const stored = await readPlatforms(terminal.env)
  stored.platforms[name] = { url, token }
  await writePlatforms(terminal.env, { ...stored, current: stored.current ?? name })
  if (terminal.is_json) return terminal.json({ name, url, agent, is_current: (stored.current ?? name) === name })
  terminal.note(`Added the context ${name}: ${url}, as ${who}.`)
}

export async function removeContext(terminal: Terminal, name: string): Promise<void> {
  const stored = await readPlatforms(terminal.env)
  const { url } = requireContext(stored, name)
  delete stored.platforms[name]
  await writePlatforms(terminal.env, { ...stored, current: stored.current === name ? null : stored.current })
  if (terminal.is_json) return terminal.json({ name, url })
  terminal.note(`Removed the context ${name}: ${url}. Its token stays valid until it expires or is revoked.`)
}

export async function logout(terminal: Terminal, wanted: string | undefined): Promise<void> {
  const { current } = await readPlatforms(terminal.env)
  const name = wanted ?? current
  if (name === null) {
    throw new Failure('You are logged in to no platform.', {
      exit_code: EXIT.failed,
      remedy: 'See all: muster context list',
    })
  }
  await removeContext(terminal, name)
}

function requireContext({ platforms }: Platforms, name: string): { url: string } {
  const platform = Object.hasOwn(platforms, name) ? platforms[name] : undefined
  if (platform !== undefined) return platform
  throw new Failure(`There is no context ${name}.${didYouMean(name, Object.keys(platforms))}`, {
    remedy: 'See all: muster context list',
  })
}
