// The MCP server of `muster mcp`, over standard input and output. The library is an optional package: it is large, and only
// this command needs it.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ApiError } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure, textOf } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { groupsOfTools, hideSecrets, listTools, type Tool } from './tools.ts'

export type McpOptions = GlobalOptions & { write?: boolean; allow?: string[] }

/** Characters of one result; an agent pays for each. */
const RESULT_CHARACTERS_MAX = 50_000
/** One call of a tool. Operations that wait for events return earlier. */
const CALL_MS_MAX = 60_000

const { version: VERSION } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

type Result = { content: { type: 'text'; text: string }[]; isError?: boolean }

export async function serveMcp(terminal: Terminal, options: McpOptions): Promise<void> {
  const allow = options.allow ?? []
  requireGroups(allow)
  const { Server, StdioServerTransport, types } = await loadLibrary()
  const { client, url, origin } = await openSession(terminal, options)
  const tools = new Map(
    listTools({ has_writes: options.write === true, allow }).map((tool) => [tool.name, tool] as const),
  )
  const server = new Server({ name: 'muster', version: VERSION }, { capabilities: { tools: {} } })
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: [...tools.values()].map(({ operation: _operation, ...tool }) => tool),
  }))
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }) => {
    const tool = tools.get(params.name)
    if (tool === undefined)
      return failed(`There is no tool ${params.name}.${didYouMean(params.name, [...tools.keys()])}`)
    return callTool(client, tool, params.arguments ?? {})
  })
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve
  })
  await server.connect(new StdioServerTransport())
  terminal.note(`${tools.size} tools for ${url} (${origin})${options.write ? ', with writes' : ', read-only'}`)
  // The library does not report the end of standard input.
  process.stdin.once('end', () => void server.close())
  terminal.signal.addEventListener('abort', () => void server.close(), { once: true })
  await closed
}

async function callTool(client: Client, tool: Tool, given: Record<string, unknown>): Promise<Result> {
  const { operation, inputSchema } = tool
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(inputSchema.properties, name))
  if (unknown !== undefined) {
    return failed(`There is no argument ${unknown}.${didYouMean(unknown, Object.keys(inputSchema.properties))}`)
  }
  const pick = (schema: object): Record<string, unknown> => {
    const names = Object.keys((schema as { properties?: object }).properties ?? {})
    return Object.fromEntries(names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]))
  }
  const params = pick(operation.params)
  for (const name of Object.keys((operation.params as { properties?: object }).properties ?? {})) {
    // An empty one, or a step up, would make the path of another operation.
    if (typeof params[name] !== 'string' || /^\.{0,2}$/.test(params[name])) return failed(`${name} must be given.`)
  }
  const signal = AbortSignal.timeout(CALL_MS_MAX)
  const headers = operation.idempotent ? { 'idempotency-key': randomUUID() } : undefined
  const input = {
    params,
    query: pick(operation.query),
    ...(given.body === undefined ? {} : { body: given.body }),
    ...(headers === undefined ? {} : { headers }),
    signal,
  }
  try {
    const response = await client.call(operation, input as Parameters<Client['call']>[1])
    return { content: [{ type: 'text', text: bounded(JSON.stringify(hideSecrets(response))) }] }
  } catch (error) {
    if (signal.aborted) return failed(`The platform did not respond within ${CALL_MS_MAX / 1000} s.`)
    if (error instanceof ApiError || error instanceof Failure) return failed(textOf(error))
    throw error
  }
}

function failed(text: string): Result {
  return { content: [{ type: 'text', text: bounded(text) }], isError: true }
}

function bounded(text: string): string {
  if (text.length <= RESULT_CHARACTERS_MAX) return text
  const left_out = text.length - RESULT_CHARACTERS_MAX
  return `${text.slice(0, RESULT_CHARACTERS_MAX)}\n[${left_out} characters left out: ask for less, or for one record]`
}

function requireGroups(allow: readonly string[]): void {
  const groups = groupsOfTools()
  for (const group of allow) {
    if (groups.includes(group)) continue
    throw new Failure(`--allow: there is no group ${group}.${didYouMean(group, groups)}`, {
      exit_code: EXIT.usage,
      remedy: `The groups: ${groups.join(', ')}`,
    })
  }
}

async function loadLibrary() {
  try {
    const [{ Server }, { StdioServerTransport }, types] = await Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ])
    return { Server, StdioServerTransport, types }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Failure('muster mcp needs the package @modelcontextprotocol/sdk, which is not installed.', {
      remedy: 'In a checkout without development packages, install it: npm install @modelcontextprotocol/sdk',
      cause: error,
    })
  }
}
