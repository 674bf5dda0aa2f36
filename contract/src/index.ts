export * from './errors.ts'
export * from './operation.ts'
export * from './records.ts'
export * from './version-config.ts'
