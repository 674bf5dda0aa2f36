// A folder in a process of its own, for tests that kill it: a few rows of the journal at a time.
import { pino } from 'pino'
import { startAggregation } from '../../src/analytics/aggregate.ts'
import { connect } from '../../src/database/connect.ts'
import { createListener } from '../../src/database/listen.ts'

const ROWS_AT_ONCE = 3

const log = pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' })
const url = process.argv[2]!
const { pool, primary } = connect({ url, application_name: 'folder program', log })
startAggregation({ pool, now: Date.now, log, listener: createListener({ url, primary, log }) }, ROWS_AT_ONCE)
