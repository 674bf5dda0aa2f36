// How long tests, test files and the process of a test file may take. A machine may be five times slower than a quiet one.
export const TEST_MS_MAX = limitOf('TEST_MS_MAX', 600_000)
/** The slowest file takes a minute on a quiet machine, and ten on a loaded one with half a processor. */
export const FILE_MS_MAX = limitOf('TEST_FILE_MS_MAX', 1_200_000)
/** From the end of the last test of a file to the end of its process, which takes two seconds on a quiet machine. */
export const EXIT_MS_MAX = limitOf('TEST_EXIT_MS_MAX', 30_000)

/** The tests of the limits set shorter ones. */
function limitOf(variable: string, limit_ms: number): number {
  return Number(process.env[variable] ?? limit_ms)
}
