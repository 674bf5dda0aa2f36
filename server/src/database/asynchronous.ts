// A write that no response promises needs no wait for the disk or for a standby.

/** In the FROM of a statement that is its own transaction: its commit waits for nothing. A crash may lose it. */
export const ASYNCHRONOUS = "(select set_config('synchronous_commit', 'off', true)) as asynchronous"
