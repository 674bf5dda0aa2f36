// The players of an attached server, by token. The platform accepts a token once, but a player may use it for several
// connections and requests. The first use calls `connected`, later uses belong to the same player, and the seat is returned
// when the last use has ended. A player is checked, then present, then leaving.
import { MusterError } from './error.js'
                                        

/** Includes players whose check is not finished. More than a lobby has seats. */
const PLAYERS_MAX = 16_384
/** Uses of tokens that wait for the response of the platform. */
const WAITING_MAX = 256
/** Connections of one player at once. */
const CONNECTIONS_PER_PLAYER_MAX = 64
/** A player without connections has left after this time without a request. Socket.IO polls at least every 25 s. */
const REQUEST_GAP_MS = 30_000
/** How long the next use of a token waits until its seat has been returned. */
const LEAVING_MS_MAX = 10_000
/** Refusals that are logged in a minute; the others are counted. */
const LOGGED_PER_MINUTE_MAX = 10
const MINUTE_MS = 60_000
const TOKEN = /^[\w.-]{1,2048}$/

                                                                       

/** An upgraded connection, or a request until its response has ended. */
                                              

/** A use of a token that was accepted. `end` is called once. */
                                                  

                       
                                                                                       
                                                                         
 

               
               
                                                                                 
                                  
                     
                                                                                     
                            
              
                                 
 

const NO_TOKEN          = {
  status: 401,
  code: 'NO_PLAYER_TOKEN',
  message: 'A player token is required: ?player_token=TOKEN, or "Authorization: Bearer TOKEN".',
}
const BUSY          = { status: 503, code: 'LOBBY_BUSY', message: 'The lobby is busy. Try again.' }
const TOO_MANY          = { status: 429, code: 'TOO_MANY_CONNECTIONS', message: 'The player has too many connections.' }

export function isRefusal(outcome               )                     {
  return 'status' in outcome
}

export function createPlayers(options                                                                )          {
  const { lobby, hold_ms, log } = options
  const players = new Map                ()
  const logRefusal = limitedLog(log)
  let waiting = 0

  function admit(token               )                                         {
    if (token === null || !TOKEN.test(token)) return NO_TOKEN
    const player = players.get(token)
    if (player?.is_present && player.left === null) return use(player)
    if (waiting >= WAITING_MAX || players.size >= PLAYERS_MAX) {
      logRefusal(
        `a player was refused: ${waiting} uses of tokens wait for the platform, ${players.size} players are present`,
      )
      return BUSY
    }
    waiting += 1
    return admitLater(token).finally(() => {
      waiting -= 1
    })
  }

  async function admitLater(token        )                         {
    const leaving = players.get(token)?.left ?? null
    if (leaving !== null && !(await isWithin(leaving, LEAVING_MS_MAX))) return BUSY
    const player = players.get(token) ?? check(token)
    return (await player.checked) ?? use(player)
  }

  function check(token        )         {
    const checked = lobby.connected(token).then(
      () => {
        player.is_present = true
        return null
      },
      (error         ) => refuse(player, error),
    )
    const player         = { token, checked, is_present: false, left: null, uses: 0, gap: undefined }
    players.set(token, player)
    return player
  }

  function refuse(player        , error         )          {
    const { code, message, status } =
      error instanceof MusterError ? error : new MusterError('INTERNAL_ERROR', `${error}`)
    logRefusal(`a player was refused: ${code}: ${message}`)
    if (status >= 400 && status < 500 && status !== 429) {
      players.delete(player.token)
      return { status: 401, code, message }
    }
    // The platform may have consumed the token even when its response was lost.
    leave(player)
    return { status: 503, code, message }
  }

  function use(player        )                {
    // All uses that waited for `checked` arrive here, some of them after the first one has ended.
    if (player.left !== null) return BUSY
    if (player.uses >= CONNECTIONS_PER_PLAYER_MAX) return TOO_MANY
    player.uses += 1
    clearTimeout(player.gap)
    return {
      end(kind) {
        player.uses -= 1
        if (player.uses > 0) return
        if (kind === 'connection') leave(player)
        else player.gap = setTimeout(leave, REQUEST_GAP_MS, player).unref()
      },
    }
  }

  function leave(player        )       {
    player.left = lobby
      .disconnected(player.token, hold_ms > 0 ? { hold_ms } : undefined)
      .catch((error       ) => log(`a seat was not returned, and stays taken until it expires: ${error.message}`))
      .finally(() => players.delete(player.token))
  }

  return { admit }
}

function isWithin(event               , ms        )                   {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, false)
    void event.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** Anyone can cause refusals, so they must not fill the log of the lobby. */
function limitedLog(log                        )                         {
  let minute = Number.NEGATIVE_INFINITY
  let count = 0
  return (line) => {
    const now_ms = performance.now()
    if (now_ms - minute >= MINUTE_MS) {
      if (count > LOGGED_PER_MINUTE_MAX) log(`${count - LOGGED_PER_MINUTE_MAX} more players were refused`)
      minute = now_ms
      count = 0
    }
    count += 1
    if (count <= LOGGED_PER_MINUTE_MAX) log(line)
  }
}
