// The output of a lobby on a node. It is followed once its container is known, and again on a new connection after the node
// was away: the old connection may be dead without a sign.
import { ContainerOutput, markOutputOpen, type OutputOptions } from '../docker/output.ts'

type Hooks = Pick<OutputOptions, 'onFailure'> & { onEnd: () => void }

export class TaskOutput {
  /** The id of the container; null: not known yet. */
  container: string | null = null
  readonly #options: Omit<OutputOptions, 'container' | 'onFailure'>
  readonly #hooks: Hooks
  #output: ContainerOutput | null = null
  #changing: Promise<void> = Promise.resolve()
  #is_closed = false

  constructor(options: Omit<OutputOptions, 'container' | 'onFailure'>, hooks: Hooks) {
    this.#options = options
    this.#hooks = hooks
  }

  /** Follows the output of this container from where it was read last. */
  follow(container: string): void {
    if (this.#is_closed) return
    this.container = container
    markOutputOpen(this.#options.folder)
    this.#changing = this.#changing.then(() => this.#replace(container))
  }

  /** The container has ended. Waits until its output is written, for this time at most. */
  async whole(ms_max: number): Promise<void> {
    await this.#changing
    await this.#output?.whole(ms_max)
  }

  async close(): Promise<void> {
    this.#is_closed = true
    await this.#changing
    await this.#output?.close()
  }

  async #replace(container: string): Promise<void> {
    await this.#output?.close()
    if (this.#is_closed) return
    const output = new ContainerOutput({ ...this.#options, container, onFailure: this.#hooks.onFailure })
    this.#output = output
    void output.done.then(() => {
      if (this.#output === output && !this.#is_closed) this.#hooks.onEnd()
    })
  }
}
