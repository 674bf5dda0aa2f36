// `npm run bench NAME`: measures the platform as ratios against a ceiling of the same run on the same machine. Absolute
// figures are printed for orientation only, because machines differ.
import { cpus } from 'node:os'

const BENCHES: Record<string, () => Promise<{ run: () => Promise<void> }>> = {
  analytics: () => import('./analytics/run.ts'),
  boxes: () => import('./boxes/run.ts'),
  cdn: () => import('./cdn/run.ts'),
  cost: () => import('./cost/run.ts'),
  crowd: () => import('./crowd/run.ts'),
  edge: () => import('./edge/run.ts'),
  edges: () => import('./edges/run.ts'),
  find: () => import('./find/run.ts'),
  hostile: () => import('./hostile/run.ts'),
  hub: () => import('./hub/run.ts'),
  idle: () => import('./idle/run.ts'),
  images: () => import('./images/run.ts'),
  matching: () => import('./matching/run.ts'),
  rays: () => import('./find/rays.ts'),
  scale: () => import('./scale/run.ts'),
  shards: () => import('./shards/run.ts'),
  tail: () => import('./find/tail.ts'),
  upload: () => import('./upload/run.ts'),
}

const name = process.argv[2] ?? ''
const load = BENCHES[name]
if (load === undefined) {
  console.error(`npm run bench ${Object.keys(BENCHES).join('|')}`)
  process.exitCode = 1
} else {
  console.log(`bench ${name}: Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim()})`)
  await (await load()).run()
}
