// Guards the HTTP servers of an attached process: an upgrade or a request reaches the server's own listeners after its player
// has been admitted. Node passes both to every listener through `emit`, however the listener was added.
import {                       Server,                     } from 'node:http'
                                         
import { isRefusal,                                      } from './attach-players.js'

const REQUEST_EVENTS                       = new Set(['request', 'checkContinue', 'checkExpectation'])
const CONNECTION_EVENTS                       = new Set(['upgrade', 'connect'])
/** Paths that all servers interpret alike: nothing is encoded, and there is no `..`. */
const PLAIN_PATH = /^(?!.*\.\.)(?:\/[\w.~-]*)(?:\/[\w.~-]+)*\/?$/

              
                  
                               
                                          
                                        
 

                                                           

export function guardHttp(guard       )       {
  const emit = Server.prototype.emit        
  /** A server may pass an admitted request to another server. */
  const admitted = new WeakSet                 ()

  Server.prototype.emit = function (              event         , ...args           )          {
    const is_request = REQUEST_EVENTS.has(event)
    if (!is_request && !CONNECTION_EVENTS.has(event)) return emit.call(this, event, ...args)
    const request = args[0]                   
    const isLetIn = admitted.has(request) || !guard.isGuarded(this)
    if (isLetIn || (is_request && needsNoToken(request, guard.open_paths))) return emit.call(this, event, ...args)

    const proceed = ()       => {
      admitted.add(request)
      emit.call(this, event, ...args)
    }
    const outcome = guard.players.admit(tokenOf(request))
    if (is_request) guardRequest(args[1]                  , outcome, proceed)
    else guardConnection(args[1]          , outcome, proceed)
    return true
  }
}

                                           

function guardRequest(response                , outcome         , proceed            )       {
  const onOutcome = (found               )       => {
    if (isRefusal(found)) refuseRequest(response, found)
    else if (response.closed)
      found.end('request') // The client has disconnected during the check.
    else {
      response.once('close', () => found.end('request'))
      proceed()
    }
  }
  if (outcome instanceof Promise) void outcome.then(onOutcome)
  else onOutcome(outcome)
}

function guardConnection(socket        , outcome         , proceed            )       {
  // During the check the socket has no other listener. A socket that fails is closed; `onOutcome` handles that.
  const onError = ()       => {}
  const onOutcome = (found               )       => {
    if (isRefusal(found)) refuseConnection(socket, found)
    else if (socket.closed || socket.destroyed) found.end('connection')
    else {
      socket.off('error', onError)
      socket.once('close', () => found.end('connection'))
      proceed()
    }
  }
  socket.on('error', onError)
  if (outcome instanceof Promise) void outcome.then(onOutcome)
  else onOutcome(outcome)
}

/** From `?player_token=`, `Authorization: Bearer`, or `?token=`; null when there is none. */
function tokenOf({ url, headers }                 )                {
  const query = new URLSearchParams(url?.split('?')[1] ?? '')
  const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? []
  return query.get('player_token') ?? bearer ?? query.get('token')
}

/** A browser cannot add a token to a CORS preflight, and the response to it reveals nothing. */
function needsNoToken({ method, url, headers }                 , open_paths                   )          {
  if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) return true
  if (open_paths.length === 0) return false
  const path = url?.split('?')[0] ?? ''
  if (!PLAIN_PATH.test(path)) return false
  return open_paths.some((open) => path === open || (open.endsWith('/') && path.startsWith(open)))
}

function refuseRequest(response                , refusal         )       {
  response.writeHead(refusal.status, headersOf(refusal))
  response.end(bodyOf(refusal))
}

function refuseConnection(socket        , refusal         )       {
  const status = refusal.status === 401 ? '401 Unauthorized' : `${refusal.status} Refused`
  const headers = Object.entries({ ...headersOf(refusal), connection: 'close' })
  const head = [`HTTP/1.1 ${status}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\r\n')
  socket.once('finish', () => socket.destroy())
  socket.end(`${head}\r\n\r\n${bodyOf(refusal)}`)
}

/** The page of a game has another origin than its lobby, and must be able to read the reason of a refusal. */
function headersOf(refusal         )                                  {
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(bodyOf(refusal)),
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
  }
}

function bodyOf({ code, message }         )         {
  return JSON.stringify({ code, message })
}
