// `node compile.ts`: loads the modules of all roles, and stores their compiled code in the folder of NODE_COMPILE_CACHE. A
// process that finds it there loads in half the time, and without Node's TypeScript compiler, which takes 17 MB.
// `node compile.ts check` loads the supervisor too, and reads the settings. So a running platform tries the program of an
// upgrade before it changes anything. It ends with a code other than 0 and one line when the program refuses the settings.
import { flushCompileCache } from 'node:module'
import { CONFIG_EXIT_CODE, ConfigError, readConfig } from './config/read-config.ts'

await Promise.all([
  import('./main.ts'),
  import('./roles/api.ts'),
  import('./roles/matchmaker.ts'),
  import('./runner/start.ts'),
  import('./runner/drivers/process/process.ts'),
  import('./cloud/uploads/check-build.ts'),
  import('./runner/logs/logger.ts'),
  import('./edge/start.ts'),
  import('./edge/tls/local.ts'),
])
if (process.argv[2] === 'check') {
  await import('./supervisor/start.ts')
  try {
    readConfig(process.env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(CONFIG_EXIT_CODE)
  }
}
flushCompileCache()
process.exit()
