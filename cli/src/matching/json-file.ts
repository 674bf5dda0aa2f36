// A file of JSON that a command is given.
import { readFileSync } from 'node:fs'
import { EXIT, Failure } from '../failure.ts'

/** `shown`: the path as the person wrote it. Throws a Failure when the file cannot be read as JSON. */
export function readJson(file: string, shown: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Failure(`${shown} cannot be read as JSON: ${(error as Error).message}`, {
      exit_code: EXIT.usage,
      cause: error,
    })
  }
}
