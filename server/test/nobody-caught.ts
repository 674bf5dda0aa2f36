// Loaded before every test file: an error that nobody caught is written with where it came from. The runner says of one
// that comes when its test has ended only what it says, and fails the file.
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (error: unknown) => console.error(`Nobody caught this (${event}):`, error))
}
