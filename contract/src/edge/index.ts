// How the edge admits players whose seats it checks, and what a lobby's server learns about them: the platform and `muster dev`
// do it by the same code.
export * from './header-lines.ts'
export * from './http-admission.ts'
export * from './player-address.ts'
export * from './players.ts'
export * from './preflight.ts'
export * from './proxy-header.ts'
export * from './stream-admission.ts'
export * from './udp-handshake.ts'
