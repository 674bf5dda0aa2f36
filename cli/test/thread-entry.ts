// The program in a thread of a test. A thread cannot change its working folder, so the program reads another one. Relative paths
// that it gives to the system would still begin in the folder of the process: commands resolve them first.
import { workerData } from 'node:worker_threads'

const { program, cwd } = workerData as { program: string; cwd: string }
process.cwd = () => cwd
await import(program)
