// What makes a version config acceptable beyond its schema, as far as it can be said without stored data.
export { checkActions, withOneName } from './action-check.ts'
export { checkAdmission } from './admission-check.ts'
export { checkVersionConfig, dockerBlocksOf } from './check.ts'
export type { PlatformRules } from './platform-rules.ts'
export { checkPorts } from './port-check.ts'
export { type BuildFile, checkProgram, ofOneText } from './program-check.ts'
export { beginWith, runBy } from './run-by.ts'
