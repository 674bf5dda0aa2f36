// The limits of lobbies that tests of drivers start.
import type { Tier } from '../../src/runner/drivers/driver.ts'

export const TIER: Tier = {
  cpu_cores: 2,
  memory_bytes: 512 * 1024 ** 2,
  pids_max: 64,
  tmp_bytes: 2 ** 20,
  disk_bytes: 2 ** 21,
}
