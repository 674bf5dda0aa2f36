// Whether the platform can see what `ready` of a docker block waits for.
import type { ErrorDetail } from '../errors.ts'
import { ExpressionError, readLineExpression } from '../line-expression.ts'
import type { VersionConfig } from '../version-config.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>

/** `path` is the docker block's. */
export function checkReady({ ready, ports = {} }: Docker, path: readonly string[]): ErrorDetail[] {
  if (ready === 'listening' && !Object.values(ports).some(({ port_range }) => port_range === undefined)) {
    const message =
      'The platform waits until the server listens on its ports, and there is none with a number. Add a port, or wait for a line of the log.'
    return [{ path: [...path, 'ready'], reason: 'no_ports', message }]
  }
  if (typeof ready !== 'object') return []
  try {
    readLineExpression(ready.log)
    return []
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const message = `The expression cannot be read: ${error.message}. Put a \\ in front of a character that stands for itself.`
    return [{ path: [...path, 'ready', 'log'], reason: 'invalid', message }]
  }
}
