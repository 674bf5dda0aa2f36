// The player in a browser: an identity that the device stores, its party, and events with seats. The first visit creates a
// guest identity; all later calls use it.
import {                                                    createClient,           } from './browser.js'
import { MusterError } from './error.js'
import { matchmakerAddress, pause, retrying, send } from './request.js'

                                                                                                                     

                     
                  
                                            
              
                            
                                                     
 

                                             
     
                                                                                                                               
                               
     
                                                       
 

/** A client with the identity of this player. With `party: true`, find, join and create request seats for the whole party. */
                               
                    
                                                    
                                                                
                                                  
                                                                       
                                                                          
                                                             
                                                     
                                                                                                                          
                                                                                          
                                                                                                                   
                                                                                
 

const STORAGE_KEY = 'muster.identity'
/** Pause after a call failed in spite of its retries. */
const WATCH_PAUSE_MS = 5_000

/** Browsers may block the storage of a page in a frame of another site: then all access to it throws. */
const DEVICE                                        = {
  getItem: (key) => withLocalStorage((storage) => storage.getItem(key)),
  setItem: (key, value) => void withLocalStorage((storage) => storage.setItem(key, value)),
}

/** Null: there is none, or it is blocked. */
function withLocalStorage   (access                         )           {
  try {
    const { localStorage } = globalThis                              
    return localStorage === undefined ? null : access(localStorage)
  } catch (error) {
    if (error instanceof DOMException) return null
    throw error
  }
}

                                                               
                                                                         

/** Throws a MusterError when the platform does not know this page's origin or token. */
export async function openPlayer(options                = {}, { signal }              = {})                  {
  const storage = options.storage === undefined ? DEVICE : options.storage
  const url = (options.matchmaker_url ?? (await matchmakerAddress(signal))).replace(/\/$/, '')

  const ask =    (token                    , { method, path, body }         , callOptions              = {}) =>
    retrying(() => {
      const request              = { method, headers: {} }
      const headers                         = {}
      if (token !== undefined) headers.authorization = `Bearer ${token}`
      if (body !== undefined) {
        headers['content-type'] = 'application/json'
        request.body = JSON.stringify(body)
      }
      request.headers = headers
      if (callOptions.signal !== undefined) request.signal = callOptions.signal
      return send(`${url}${path}`, request)
    }, callOptions.signal)              

  const kept = storage?.getItem(STORAGE_KEY) ?? null
  const { identity, identity_token: token } = await ask                                                (
    options.token,
    { method: 'POST', path: '/identity/identities', body: kept === null ? {} : { existing_identity_token: kept } },
    signal === undefined ? {} : { signal },
  )
  storage?.setItem(STORAGE_KEY, token)

  const post = async (path        , body         , callOptions              )                 =>
    (await ask                  (token, { method: 'POST', path, body }, callOptions)).party

  const party = async (watch_index               , callOptions              ) => {
    const query = watch_index === null ? '' : `?watch_index=${encodeURIComponent(watch_index)}`
    try {
      const request = { method: 'GET', path: `/parties/self${query}` }
      return await ask                                            (token, request, callOptions)
    } catch (error) {
      if (error instanceof MusterError && error.code === 'PARTY_NOT_FOUND') return null
      throw error
    }
  }

  return {
    ...createClient({ ...options, matchmaker_url: url, token }),
    identity,
    createParty: (callOptions) => post('/parties', {}, callOptions),
    joinParty: (code, callOptions) => post('/parties/join', { code }, callOptions),
    leaveParty: async (callOptions) => void (await post('/parties/leave', {}, callOptions)),
    setLeader: (identity_id, callOptions) => post('/parties/leader', { identity_id }, callOptions),
    async removeMember(identity_id, callOptions) {
      const path = `/parties/members/${encodeURIComponent(identity_id)}`
      return (await ask                  (token, { method: 'DELETE', path }, callOptions)).party
    },
    party: async (callOptions) => (await party(null, callOptions))?.party ?? null,
    async watchParty(onParty, callOptions = {}) {
      let index                = null
      await keepWatching(async () => {
        const found = await party(index, callOptions)
        const before                = index
        index = found?.watch.index ?? null
        if (found === null || index !== before) onParty(found?.party ?? null)
        return found !== null
      }, callOptions.signal)
    },
    async watchSeats(onSeat, callOptions = {}) {
      // The platform delivers an event at least once: known events are skipped.
      const known_ids = new Set        ()
      let query = ''
      await keepWatching(async () => {
        const request = { method: 'GET', path: `/identity/events/live${query}` }
        const news = await ask                                               (token, request, callOptions)
        for (const { event_id, kind } of news.events) {
          if (kind.matchmaker_lobby_join === undefined || known_ids.has(event_id)) continue
          known_ids.add(event_id)
          onSeat(kind.matchmaker_lobby_join)
        }
        query = `?watch_index=${encodeURIComponent(news.watch.index)}`
        return true
      }, callOptions.signal)
    },
  }
}

/** Repeats `poll` until it returns false or the signal is aborted. Throws errors that are not temporary. */
async function keepWatching(poll                        , signal                         )                {
  while (!signal?.aborted) {
    try {
      if (!(await poll())) return
    } catch (error) {
      if (signal?.aborted) return
      const is_temporary =
        error instanceof MusterError && (error.status === 0 || error.status === 429 || error.status >= 500)
      if (!is_temporary) throw error
      await pause(error.retry_after_ms ?? WATCH_PAUSE_MS, signal).catch(() => {})
    }
  }
}
