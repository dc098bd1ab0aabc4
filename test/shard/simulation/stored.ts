/** Everything that was stored and is still there after power cuts, in its order: what is true can be told again without the rest. */
interface Entry {
  readonly log: 'inbox' | 'journal'
  readonly seq: number
  /** `committed`: the last sequence of the journal by then. */
  readonly tell: (committed: number) => void
}

export class Stored {
  #entries: Entry[] = []

  add(log: Entry['log'], seq: number, tell: Entry['tell']): void {
    this.#entries.push({ log, seq, tell })
  }

  /** Of each log what stands from that sequence on is gone. */
  lose(from: Record<Entry['log'], number>): void {
    this.#entries = this.#entries.filter(({ log, seq }) => seq < from[log])
  }

  /** `committed`: the sequence before the first commit. */
  tellAgain(committed: number): void {
    let last = committed
    for (const { log, seq, tell } of this.#entries) {
      if (log === 'journal') last = seq
      tell(last)
    }
  }
}
