// The SDK for lobby servers: reads the lobby's environment, and reports readiness, players and state. It has no dependencies. It
// uses node:http, because the first `fetch` of a process takes tens of milliseconds, for which players would wait.
import { randomUUID } from 'node:crypto'
import { Agent,                                          request as requestHttp } from 'node:http'
import { errorOf, isTemporary, MusterError, retryDelay } from './error.js'

export { MusterError } from './error.js'

                                                                      

                            
                             
                           
                                                                                                              
                              
                                                                                                                
                          
 

/** The lobby of this process. Every call may throw a MusterError. */
                     
                                                                                               
                    
            
                   
                      
                   
                                                               
                     
                                                                                     
                 
                                        
                                                                                                           
                            
                                                                                       
                        
                                                                                                                        
                                               
     
                                                                                                                            
                                                                                                                              
                              
     
                                                                                  
                                                          
                                             
                                                    
                                         
 

/** How a call is retried while the platform cannot be reached or is temporarily unavailable. */
                    
                
                      
                      
                                                                          
                        
 

/** Longer than a restart of the matchmaker, which takes a second or two: it must not disconnect players. */
const CALL_RETRIES              = { ms_max: 10_000, attempts_max: 32, pause_ms_max: 1_000, holds_process: true }
/**
 * No player waits for this call, so it may outlast the restart of a machine. When the lobby ends, the platform frees its
 * seats anyway.
 */
const SEAT_RETURN_RETRIES              = {
  ms_max: 60 * 60_000,
  attempts_max: 1_000,
  pause_ms_max: 5_000,
  holds_process: false,
}
/** For one attempt. */
const RESPONSE_MS_MAX = 10_000
/** Longest response of the platform that is read. */
const RESPONSE_BYTES_MAX = 65_536
/** Connections to the platform at once. */
const CONNECTIONS_MAX = 8

/** Reads the lobby's environment. Call it once, at the start. */
export function openLobby(options               = {})        {
  const environment = options.environment ?? process.env
  const is_hosted = environment.PLATFORM_TOKEN !== undefined && environment.PLATFORM_API_URL !== undefined
  if (!is_hosted) {
    const log = options.log ?? ((line        ) => process.stderr.write(`${line}\n`))
    log('muster: not started by the platform (no PLATFORM_TOKEN): every player is let in, nothing is reported.')
  }
  const caller = is_hosted ? createCaller(environment.PLATFORM_API_URL , environment.PLATFORM_TOKEN ) : null
  const retries = { ...CALL_RETRIES, ...(options.retrying_ms_max !== undefined && { ms_max: options.retrying_ms_max }) }
  const call = async (method        , path        , body         ) => caller?.call(method, path, body, retries)

  return {
    is_hosted,
    id: environment.PLATFORM_LOBBY_ID ?? '00000000-0000-0000-0000-000000000000',
    game_mode: environment.PLATFORM_GAME_MODE_NAME ?? 'default',
    namespace_id: environment.PLATFORM_NAMESPACE_ID ?? '00000000-0000-0000-0000-000000000000',
    region_id: environment.PLATFORM_REGION_ID ?? 'local',
    max_players: Number(environment.PLATFORM_MAX_PLAYERS_NORMAL ?? 32),
    config: JSON.parse(environment.PLATFORM_LOBBY_CONFIG ?? 'null'),
    tags: JSON.parse(environment.PLATFORM_LOBBY_TAGS ?? '{}')                          ,
    port(name) {
      const variable = `PORT_${name.toUpperCase().replaceAll('-', '_')}`
      const port = Number(environment[variable])
      if (Number.isInteger(port) && port > 0) return port
      throw new MusterError('NOT_A_LOBBY', `${variable} is not set: the version has no port named ${name}.`)
    },
    ready: () => call('POST', '/matchmaker/lobbies/ready', {}),
    connected: (player_token) => call('POST', '/matchmaker/players/connected', { player_token }),
    disconnected: async (player_token, options) =>
      caller?.call('POST', '/matchmaker/players/disconnected', { player_token, ...options }, SEAT_RETURN_RETRIES),
    setClosed: (is_closed) => call('PUT', '/matchmaker/lobbies/closed', { is_closed }),
    setState: (state) => call('PUT', '/matchmaker/lobbies/state', state ?? null),
  }
}

                                                                                                        

/** All calls share one keep-alive pool. Each call has an idempotency key, which its retries repeat. */
function createCaller(address        , token        )         {
  const url = new URL(address)
  const prefix = url.pathname.replace(/\/$/, '')
  const transport = transportOf(url)
  return {
    async call(method, path, body, { ms_max, attempts_max, pause_ms_max, holds_process }) {
      const text = JSON.stringify(body)
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        'idempotency-key': randomUUID(),
      }
      const until_ms = performance.now() + ms_max
      for (let count = 0; ; count++) {
        try {
          return await send(await transport, { method, path: `${prefix}${path}`, headers }, text, until_ms)
        } catch (error) {
          if (!(error instanceof MusterError) || !isTemporary(error) || count + 1 >= attempts_max) throw error
          const delay_ms = retryDelay(error, count, pause_ms_max)
          if (performance.now() + delay_ms >= until_ms) throw error
          await new Promise((resolve) => {
            const timer = setTimeout(resolve, delay_ms)
            if (!holds_process) timer.unref()
          })
        }
      }
    },
  }
}

                                                           

/** Loads node:https only for an https URL. Idle connections do not keep the process alive. */
function transportOf(url     )                                 {
  const pool = { keepAlive: true, maxSockets: CONNECTIONS_MAX }
  const target = { hostname: url.hostname.replace(/^\[|\]$/g, ''), ...(url.port === '' ? {} : { port: url.port }) }
  if (url.protocol === 'https:') {
    return import('node:https').then((https) => {
      const agent = new https.Agent(pool)
      return (options) => https.request({ ...target, agent, ...options })
    })
  }
  const agent = new Agent(pool)
  return (options) => requestHttp({ ...target, agent, ...options })
}

function send(transport           , options                , text        , until_ms        )                {
  return new Promise((resolve, reject) => {
    const fail = (reason        ) =>
      reject(new MusterError('CONNECTION_FAILED', `No answer from the platform: ${reason}.`))
    const request = transport(options)
    // A platform that neither responds nor closes the connection must not block a player forever.
    const timer = setTimeout(
      () => request.destroy(new Error('it took too long')),
      Math.min(RESPONSE_MS_MAX, Math.max(1, until_ms - performance.now())),
    )
    request.on('error', (error) => fail(error.message))
    request.on('close', () => {
      clearTimeout(timer)
      fail('the connection closed')
    })
    request.on('response', (response) => {
      let received = ''
      response.setEncoding('utf8')
      response.on('data', (part        ) => {
        received += part
        if (received.length > RESPONSE_BYTES_MAX) request.destroy(new Error('it was too large'))
      })
      response.on('error', (error) => fail(error.message))
      response.on('end', () => {
        const status = response.statusCode ?? 0
        if (status >= 200 && status < 300) resolve()
        else reject(errorOf(status, parse(received), response.headers['retry-after']))
      })
    })
    request.end(text)
  })
}

function parse(text        )          {
  try {
    return JSON.parse(text)
  } catch {
    return null // The page of a proxy: errorOf reports that it is not a response of the platform.
  }
}
