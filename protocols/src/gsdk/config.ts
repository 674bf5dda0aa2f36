// What a GSDK server starts with: its environment and the file that GSDK_CONFIG_FILE names.
import { posix } from 'node:path'
import type { LobbyFacts } from '../lobby.ts'
import type { Endpoints, ProgramAdditions, ProtocolOptions } from '../protocol.ts'

/** In the lobby's writable folder. One folder has all that the server writes: a lobby starts with few files, and each makes its folder. */
const FOLDER = 'gsdk'
const CONFIG_PATH = `${FOLDER}/config.json`

/** `session_host_id`: the path of the server's requests has it. */
export function gsdkAdditions(
  facts: LobbyFacts,
  endpoints: Endpoints,
  options: ProtocolOptions,
  session_host_id: string,
): ProgramAdditions {
  const below = (path: string) => posix.join(facts.home, path)
  const agent = endpoints.agent
  if (agent === undefined) throw new Error('The endpoint `agent` is missing.')
  const hostname = facts.ports[0]?.public.hostname ?? ''
  const config = {
    heartbeatEndpoint: `${agent.host}:${agent.port}`,
    sessionHostId: session_host_id,
    vmId: facts.lobby_id,
    logFolder: below(FOLDER),
    certificateFolder: below(FOLDER),
    sharedContentFolder: below(FOLDER),
    gameCertificates: {},
    buildMetadata: { ...options.metadata },
    gamePorts: gamePorts(facts),
    publicIpV4Address: hostname,
    fullyQualifiedDomainName: hostname,
    serverInstanceNumber: 1,
    gameServerConnectionInfo: connectionInfo(facts, hostname),
  }
  return {
    env: {
      GSDK_CONFIG_FILE: below(CONFIG_PATH),
      PF_TITLE_ID: facts.namespace_id,
      PF_BUILD_ID: facts.version_id,
      PF_REGION: facts.region_id,
      PF_VM_ID: facts.lobby_id,
      PF_SERVER_INSTANCE_NUMBER: '1',
      PF_SERVER_LOG_DIRECTORY: below(FOLDER),
      PF_SERVER_DUMP_DIRECTORY: below(FOLDER),
      CERTIFICATE_FOLDER: below(FOLDER),
      PF_SHARED_CONTENT_FOLDER: below(FOLDER),
      PF_PUBLIC_IPV4_ADDRESS: hostname,
      PF_FQDN: hostname,
    },
    files: [{ path: CONFIG_PATH, content: `${JSON.stringify(config, null, 2)}\n` }],
  }
}

/** Numbers as text, as C++ and Unreal read them. A port range has no number. */
function gamePorts({ ports }: LobbyFacts): Record<string, string> {
  return Object.fromEntries(
    ports.flatMap(({ name, listening }) => (listening === null ? [] : [[name, String(listening)]])),
  )
}

/** The misspelt member is the one that older SDKs read. */
function connectionInfo({ ports }: LobbyFacts, hostname: string) {
  return {
    publicIpV4Adress: hostname,
    publicIpV4Address: hostname,
    gamePortsConfiguration: ports.flatMap(({ name, listening, public: { port } }) =>
      listening === null ? [] : [{ name, serverListeningPort: listening, clientConnectionPort: port ?? listening }],
    ),
  }
}
