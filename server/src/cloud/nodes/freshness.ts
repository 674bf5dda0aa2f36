// How old a report of a process may be. By the database's clock.

/** A matchmaker renews its lease, and a runner or a link its report, every few seconds. `column`: of the last report. */
export const isFreshSql = (column: string): string => `${column} > now() - interval '20 seconds'`

/** A runner reports every second, and what it uses is of that moment. */
export const isNowSql = (column: string): string => `${column} > now() - interval '10 seconds'`
