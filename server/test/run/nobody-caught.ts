// Loaded before every test file: an error that nobody caught is written with where it came from, and fails the file. The
// runner says of one that comes after its test has ended only its message. Of a file that cannot be imported it would say
// nothing, because a listener for the error is there.
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (error: unknown) => {
    console.error(`Nobody caught this (${event}):`, error)
    process.exitCode = 1
  })
}
