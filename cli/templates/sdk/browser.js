// The SDK for browsers: finds a lobby, gets a seat, and returns where to connect. It has no dependencies. The origin of a site
// stands for its namespace, so a game on the platform's CDN needs no key and no setting.
import { MusterError } from './error.js'
import { matchmakerAddress, retrying, send } from './request.js'

export { MusterError } from './error.js'

/** A port of the lobby's server, as players reach it. */
                    
                                                                                        
                     
                  
                     
                 
                                                                                   
             
 

/** A reserved seat. Send `player.token` to the lobby server, which consumes it. */
                    
                                                                                                                  
                                                                                                       
                             
                           
 

const CAPTCHA_PROVIDERS = ['hcaptcha', 'turnstile']         
                                                         

/** The response of the captcha widget. Each is valid once. See `ClientOptions.captcha`. */
                                                                                   

/** The captcha that the platform requires: the parameters of the provider's widget. */
                                                                                              

/** Members of every request for a seat. */
                  
                                                                                        
                             
                   
                                                                                   
                 
 

/** Which lobby to find. */
                                       
                      
                                                  
                    
                                                               
                                     
                               
                      
 

                                                       

/** The lobby that you open. The game mode must let players do that. */
                                      
                   
                                      
                 
                                                                                                  
                                  
                               
                      
                                                                       
                        
 

                             
                                                                                                     
                         
                                                                                                  
                
     
                                                                                                                     
                                                                                                                         
                                                                                                 
     
                                                                                
 

                                                  

                      
     
                                                                                                          
                                                                  
     
                                                               
                                                                                                                     
                                                            
                                                                                                                            
                                                                
 

/** 128 random bits. A page of a plain http address has no `crypto.randomUUID`. */
function randomKey()         {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A client of the matchmaker. Costs nothing until its first call. */
export function createClient(options                = {})         {
  let address = options.matchmaker_url

  const call = async (path        , wish           , { signal }             )                => {
    // One key for all attempts of this call: if an answer gets lost, the repetition gets the same seat, not a second.
    const headers                         = {
      'content-type': 'application/json',
      'idempotency-key': randomKey(),
    }
    if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
    const request              = { method: 'POST', headers, body: JSON.stringify(wish) }
    if (signal !== undefined) request.signal = signal
    return (await retrying(async () => {
      address ??= await matchmakerAddress(signal)
      return send(`${address.replace(/\/$/, '')}/matchmaker/lobbies/${path}`, request)
    }, signal))        
  }

  const ask = async (path        , wish           , callOptions              = {})                => {
    try {
      return await call(path, wish, callOptions)
    } catch (error) {
      const required = captchaOf(error)
      if (required === null || options.captcha === undefined) throw error
      const client_response = await options.captcha(required, callOptions)
      return call(path, { ...wish, captcha: { [required.provider]: { client_response } } }, callOptions)
    }
  }

  return {
    find: (wish, callOptions) => ask('find', wish, callOptions),
    join: (wish, callOptions) => ask('join', wish, callOptions),
    create: (wish, callOptions) => ask('create', wish, callOptions),
  }
}

/** The captcha that the refusal asks for; null when it is about something else. */
function captchaOf(error         )                         {
  if (!(error instanceof MusterError) || error.code !== 'CAPTCHA_CAPTCHA_REQUIRED') return null
  for (const provider of CAPTCHA_PROVIDERS) {
    const { site_key, action } = (error.metadata[provider] ?? {})                                            
    if (typeof site_key === 'string') return { provider, site_key, ...(typeof action === 'string' && { action }) }
  }
  return null
}

/**
 * The WebSocket address of a port: `socketUrl(seat.ports.game, '/play', { token: seat.player.token })`.
 * Throws `BAD_ANSWER` when the lobby has no such port.
 */
export function socketUrl(port                  , path = '/', query                         = {})         {
  if (port === undefined) throw new MusterError('BAD_ANSWER', 'The lobby has no such port.')
  const url = new URL(`${port.url.replace(/\/$/, '')}/${path.replace(/^\//, '')}`)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}
