// What `attach` reads from the environment: the lobby's ports, which the platform sets, and three settings of its own, which
// the `env` of a version config sets.

/** Longest hold of a seat whose player has gone, in milliseconds. The platform has the same limit. */
const HOLD_MS_MAX = 300_000
/** Paths whose requests need no token. */
const OPEN_PATHS_MAX = 64

                              
                                       
              
                                
                            
                                                                                  
                               
                                                                                
                 
 

/** Throws an Error whose message names the variable and the remedy. */
export function readSettings(environment                                              )                 {
  const by_variable = new Map                ()
  for (const [name, value] of Object.entries(environment)) {
    if (/^PORT_(?!RANGE_M(IN|AX)_)/.test(name)) by_variable.set(name, Number(value))
  }
  return {
    port: portOf(by_variable, environment.MUSTER_ATTACH_PORT),
    ports: new Set(by_variable.values()),
    open_paths: openPathsOf(environment.MUSTER_ATTACH_OPEN_PATHS),
    hold_ms: holdOf(environment.MUSTER_ATTACH_HOLD_MS),
  }
}

function portOf(by_variable                             , wanted                    )         {
  const names = [...by_variable.keys()]
  if (wanted === undefined) {
    const [only, ...others] = by_variable.values()
    if (only === undefined)
      throw new Error('muster attach: the version config has no port that goes through the proxy.')
    if (others.length === 0) return only
    throw new Error(`muster attach: the lobby has several ports (${names}): set MUSTER_ATTACH_PORT to the name of one.`)
  }
  const port = by_variable.get(`PORT_${wanted.toUpperCase().replaceAll('-', '_')}`)
  if (port !== undefined) return port
  throw new Error(`muster attach: MUSTER_ATTACH_PORT is ${wanted}, but the lobby's ports are ${names}.`)
}

function openPathsOf(text                    )           {
  const paths = (text ?? '').split(',').map((path) => path.trim())
  const named = paths.filter((path) => path !== '')
  if (named.length <= OPEN_PATHS_MAX && named.every((path) => path.startsWith('/'))) return named
  throw new Error(
    `muster attach: MUSTER_ATTACH_OPEN_PATHS must be at most ${OPEN_PATHS_MAX} paths, separated by commas, each of which begins with "/".`,
  )
}

function holdOf(text                    )         {
  const hold_ms = Number(text ?? 0)
  if (Number.isInteger(hold_ms) && hold_ms >= 0 && hold_ms <= HOLD_MS_MAX) return hold_ms
  throw new Error(`muster attach: MUSTER_ATTACH_HOLD_MS must be a whole number from 0 to ${HOLD_MS_MAX}.`)
}
