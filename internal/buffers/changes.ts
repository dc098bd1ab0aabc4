/**
 * Who waits for a change of a customer's buffers. The change feed tells of rows; whose they are is asked for only while
 * somebody waits.
 */
export interface BufferChangesOptions {
  /** Customers of the buffers with these uids; rejects while the database is away. */
  customersOf(uids: readonly string[]): Promise<readonly string[]>
}

export interface Waiter {
  /** Resolves at the first change that is told after the waiter was made, and when waiting ends for all. */
  readonly changed: Promise<void>
  /** To be called in the end, whether it resolved or not. */
  end(): void
}

export class BufferChanges {
  readonly #options: BufferChangesOptions
  readonly #waiting = new Map<string, Set<() => void>>()
  #closed = false

  constructor(options: BufferChangesOptions) {
    this.#options = options
  }

  /** Nobody waits any more: the process stops. */
  get closed(): boolean {
    return this.#closed
  }

  waiter(customerId: string): Waiter {
    const { promise: changed, resolve } = Promise.withResolvers<void>()
    if (this.#closed) resolve()
    const ofCustomer = this.#waiting.get(customerId) ?? new Set()
    this.#waiting.set(customerId, ofCustomer.add(resolve))
    const end = () => {
      ofCustomer.delete(resolve)
      if (ofCustomer.size === 0 && this.#waiting.get(customerId) === ofCustomer)
        this.#waiting.delete(customerId)
    }
    return { changed, end }
  }

  /** Rows with these uids changed. A rejection asks for another call with them. */
  async changed(uids: readonly string[]): Promise<void> {
    if (this.#waiting.size === 0) return
    for (const customerId of await this.#options.customersOf(uids)) this.#tell(customerId)
  }

  /** Anything may have changed. */
  reset(): void {
    for (const customerId of [...this.#waiting.keys()]) this.#tell(customerId)
  }

  close(): void {
    this.#closed = true
    this.reset()
  }

  #tell(customerId: string): void {
    for (const resolve of this.#waiting.get(customerId) ?? []) resolve()
  }
}
