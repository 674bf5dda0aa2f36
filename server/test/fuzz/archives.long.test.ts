import { test } from 'node:test'
import { tarOf } from '../archives/forgery.ts'
import { examineArchive, fuzzArchives } from './archives.ts'

/** Always the same archives: a run that fails fails again. `npm run fuzz archives` takes others. */
const CAMPAIGN = { count: 2_000, seed: 1 }

test('an archive of any form is unpacked within its folder and its caps, or refused without a trace', (t) =>
  fuzzArchives(t, CAMPAIGN))

test('an archive with two faults is refused by the check and by the unpacker', (t) =>
  examineArchive(t, tarOf({ name: 'a.sh' }, { name: '../evil' }).subarray(0, -1024)))
