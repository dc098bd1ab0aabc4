/**
 * What of a log is on the disks of its servers. A power cut of all of them takes a suffix of what is not, and may undo removals
 * that are not: they come back from the last one on, because a file system keeps their order.
 */
export class Disk<M extends { readonly seq: number }> {
  readonly #always: boolean
  #synced: number
  /** Since the last sync, in their order. */
  #removed: M[] = []

  /** `always`: everything is on disk before it is answered. */
  constructor(lastSeq: number, always: boolean) {
    this.#synced = lastSeq
    this.#always = always
  }

  /** All of it is on disk now. */
  sync(lastSeq: number): void {
    this.#synced = lastSeq
    this.#removed = []
  }

  removed(messages: readonly M[]): void {
    if (!this.#always) this.#removed.push(...messages)
  }

  /**
   * @returns the messages that are there afterwards, and the last sequence.
   * `messages`: those before it, in order.
   */
  cut(random: () => number, messages: readonly M[], lastSeq: number): { messages: M[]; lastSeq: number } {
    if (this.#always) return { messages: [...messages], lastSeq }
    const end = this.#synced + Math.floor(random() * (lastSeq - this.#synced + 1))
    const undone = random() < 0.5 ? this.#removed.length : Math.floor(random() * (this.#removed.length + 1))
    const left = [...this.#removed.slice(undone), ...messages].filter(({ seq }) => seq <= end)
    this.sync(end)
    return { messages: left.sort((a, b) => a.seq - b.seq), lastSeq: end }
  }
}
