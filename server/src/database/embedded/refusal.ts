// Why the embedded PostgreSQL cannot run here, and the way out.

/** The message is whole sentences for the operator; there is nothing of interest in the stack. */
export class EmbeddedRefusal extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EmbeddedRefusal'
  }
}
