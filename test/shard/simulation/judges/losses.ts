/**
 * What power cuts take is lost. Whoever knows of it must say so before anything gets two meanings
 * (docs/architecture/protocol.md, "Lost tail"). Of what nobody has seen, nothing is asked.
 */

import { highestNamed } from '../../../../internal/shard/journal/state.ts'
import type { Known } from '../../../../internal/shard/ports.ts'
import type { Lost } from '../streams.ts'
import type { Truth } from '../truth.ts'

/** A process that lived through a power cut. */
export interface Survivor {
  readonly gone: boolean
  misled: boolean
  /** The last sequences that it was told of. */
  readonly known: { readonly inbox: number; readonly journal: number }
}

export class LossJudge {
  readonly #truth: Truth
  readonly #wrong: string[]
  /** Something was taken from that log. */
  readonly lost = { inbox: false, journal: false }
  /** What the first owner said that told of a loss; null: nobody did. */
  told: string | null = null
  /** Sequences of lost commits of which nothing is left that could tell, for sure. */
  readonly #unseen = new Set<number>()
  /** Things that tell of a loss, for as long as they are there. */
  #evidence: { readonly what: string; readonly lasts: () => boolean }[] = []
  /** Names of what stood in the inbox last, by sequence. */
  readonly #packs = new Map<number, string | null>()

  constructor(truth: Truth, wrong: string[]) {
    this.#truth = truth
    this.#wrong = wrong
  }

  get any(): boolean {
    return this.lost.inbox || this.lost.journal
  }

  /** A pack stands in the inbox now. */
  stored(seq: number, msgId: string): void {
    this.#packs.set(seq, msgId)
  }

  /** After a power cut; `truth` is what is left. `ended`: the last sequences before it. */
  cut(
    { inbox, journal }: { inbox: Lost; journal: Lost },
    ended: { inbox: number; journal: number },
    postgres: Known,
    survivors: readonly Survivor[],
  ): void {
    const takes = { inbox: inbox.from <= ended.inbox, journal: journal.from <= ended.journal }
    for (const { seq } of inbox.messages) this.#packs.delete(seq)
    this.lost.inbox ||= takes.inbox
    this.lost.journal ||= takes.journal
    if (takes.journal) this.#lostCommits(journal.from, ended.journal, postgres)
    if (takes.inbox) this.#lostPacks(inbox)
    for (const survivor of survivors) {
      const { known } = survivor
      const commits = takes.journal && known.journal >= journal.from
      const packs = inbox.messages.filter(({ seq }) => seq <= known.inbox)
      if (!commits && packs.length === 0) continue
      survivor.misled = true
      const lasts = () => !survivor.gone && (commits || this.#areGone(packs))
      this.#evidence.push({ what: `an owner had committed ${known.journal}, and read ${known.inbox}`, lasts })
    }
  }

  /** An owner ends because of a loss. */
  tells(error: Error): void {
    // A power cut takes the end of a log. Its begin goes by purges only, and these must not follow from what is not on disk.
    const byPurge = /the inbox begins at|the journal misses commits/.test(error.message)
    if (!this.any || byPurge) this.#wrong.push(`this must not be lost: ${error}`)
    this.told ??= error.message
  }

  /** Two batches may have this version: nobody could know of the first. */
  mayRepeat(version: number): boolean {
    return this.#unseen.has(version)
  }

  /** What somebody could still tell of, and nobody does. */
  unnoticed(): string[] {
    if (this.told !== null) return []
    return this.#evidence.filter(({ lasts }) => lasts()).map(({ what }) => `a loss was not noticed: ${what}`)
  }

  #lostCommits(from: number, to: number, { claim, counted }: Known): void {
    const what = `Postgres knew claim ${claim.seq}, had counted ${counted.seq}`
    if (claim.seq >= from || counted.seq >= from)
      this.#evidence.push({ what: `${what}, and the journal lost ${from} to ${to}`, lasts: () => true })
    else for (let seq = from; seq <= to; seq++) this.#unseen.add(seq)
  }

  #lostPacks({ from, messages }: Lost): void {
    const named = highestNamed(this.#truth.state)
    const packs = messages.filter(({ seq }) => seq <= named)
    if (named < from) return
    const what = `the journal names ${named}, and the inbox lost what stood from ${from} on`
    this.#evidence.push({ what, lasts: () => this.#areGone(packs) })
  }

  /** Not those that their senders stored again where they stood. */
  #areGone(packs: Lost['messages']): boolean {
    return packs.some(({ seq, msgId }) => this.#packs.get(seq) !== msgId)
  }
}
