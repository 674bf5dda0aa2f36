// How long a synchronous function computes. The clock would also count what other processes of the machine take meanwhile.

/** The processor time of this thread. Other threads, which compile and collect garbage, are not counted. */
export function cpuMsOf(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
