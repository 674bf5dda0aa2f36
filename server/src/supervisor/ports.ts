// Chooses the ports of the platform before anything starts. All ports that are taken are reported in one message, instead
// of by the crash of a role later.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { hasHttps } from '../config/addresses.ts'
import type { ChosenPorts } from '../config/chosen-ports.ts'
import type { Config } from '../config/config.ts'
import { StartError, startSentence } from '../config/start-error.ts'

const HTTP_PORTS = [80, 8000] as const
const HTTPS_PORTS = [443, 8443] as const

export type PortChoice = {
  settings: ChosenPorts
  /** Why they are not 80 and 443, as text. Empty when they are, or when the settings name them. */
  reasons: readonly string[]
}

/** The edge's ports: those of the settings, otherwise 80 and 443 where they can be bound, otherwise 8000 and 8443. */
export async function chooseEdgePorts(config: Config, env: NodeJS.ProcessEnv): Promise<PortChoice> {
  const http = env.MUSTER_EDGE_HTTP_PORT?.trim() || null
  const https = env.MUSTER_EDGE_HTTPS_PORT?.trim() || null
  const refusal = http === null ? await bindError(HTTP_PORTS[0], edgeHost(config)) : null
  const https_refusal = https === null && hasHttps(config) ? await bindError(HTTPS_PORTS[0], edgeHost(config)) : null
  return {
    settings: {
      MUSTER_EDGE_HTTP_PORT: http ?? String(refusal ? HTTP_PORTS[1] : HTTP_PORTS[0]),
      MUSTER_EDGE_HTTPS_PORT: https ?? String(https_refusal ? HTTPS_PORTS[1] : HTTPS_PORTS[0]),
    },
    reasons: [...reasonOf(refusal, HTTP_PORTS[0]), ...reasonOf(https_refusal, HTTPS_PORTS[0])],
  }
}

function reasonOf(refusal: NodeJS.ErrnoException | null, port: number): string[] {
  if (refusal === null) return []
  return [refusal.code === 'EACCES' ? `${port} needs a privilege` : `${port} is taken`]
}

/** Throws a StartError with a sentence for each port that cannot be bound or is wanted twice. Port 0 means any. */
export async function requireFreePorts(config: Config): Promise<void> {
  const wanted = [
    { setting: 'MUSTER_API_PORT', port: config.api_port, host: config.internal_host },
    { setting: 'MUSTER_MATCHMAKER_PORT', port: config.matchmaker_port, host: config.internal_host },
    ...Array.from({ length: config.process_counts.matchmaker }, (_, number) => {
      const setting = number === 0 ? 'MUSTER_LOBBY_API_PORT' : `MUSTER_LOBBY_API_PORT + ${number}`
      return { setting, port: config.lobby_api_port + number, host: config.internal_host }
    }),
    { setting: 'MUSTER_EDGE_HTTP_PORT', port: config.edge_http_port, host: edgeHost(config) },
    ...(hasHttps(config)
      ? [{ setting: 'MUSTER_EDGE_HTTPS_PORT', port: config.edge_https_port, host: edgeHost(config) }]
      : []),
  ].filter(({ port }) => port !== 0)
  const sentences: string[] = []
  for (const [index, { setting, port, host }] of wanted.entries()) {
    const twin = wanted.slice(0, index).find((other) => other.port === port)
    const error = twin ? null : await bindError(port, host)
    if (twin) sentences.push(`${twin.setting} and ${setting} are both ${port}; give each a port of its own.`)
    if (error) sentences.push(startSentence(error, config))
  }
  if (sentences.length > 0) throw new StartError(sentences.join('\n'))
}

/** The first address: a firewall that asks about every open port must not ask about a test on loopback. */
function edgeHost({ edge_hosts }: Config): string {
  return edge_hosts[0] ?? '0.0.0.0'
}

/** Null when the port can be bound. The port is free again when this resolves. */
async function bindError(port: number, host: string): Promise<NodeJS.ErrnoException | null> {
  const server = createServer()
  server.listen({ port, host, exclusive: true })
  try {
    await once(server, 'listening')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  server.close()
  await once(server, 'close')
  return null
}
