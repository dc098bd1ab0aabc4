/**
 * Inboxes whose broker left a pack without an answer for as long as one is tried. A broker whose disk is full answers all
 * but appends, so nothing else tells (docs/reference/api.md, "Health").
 */
export class UnansweredInboxes {
  readonly #shards = new Set<number>()

  /** What became of a pack. The next one that is answered ends what is known of an inbox. */
  report(shard: number, answered: boolean): void {
    if (answered) this.#shards.delete(shard)
    else this.#shards.add(shard)
  }

  /** The broker is back, and may take what it did not take before. */
  forget(): void {
    this.#shards.clear()
  }

  /** Rejects while there is one; names the first. */
  async refuse(): Promise<void> {
    const [first] = this.#shards
    if (first !== undefined) throw new Error(`the inbox of shard ${first} takes nothing`)
  }
}
