// The environment of programs that the runner starts for itself: monitors of lobbies, and tools of the system.

/** No variable of the platform, and none of a lobby that could change what they do. */
export const PROGRAM_ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' } as const
