/** Whoever claims the shard knows all that was committed, whatever was purged while it read, and whoever answered. */
import { writeSnapshot } from '../../../../internal/shard/journal/snapshot.ts'
import type { FoldState } from '../../../../internal/shard/journal/state.ts'
import type { Truth } from '../truth.ts'

export class ClaimJudge {
  readonly #truth: Truth
  readonly #wrong: string[]

  constructor(truth: Truth, wrong: string[]) {
    this.#truth = truth
    this.#wrong = wrong
  }

  /** It has folded its journal, and written nothing since. */
  folded({ epoch, fold }: { epoch: number; fold: FoldState | null }): void {
    // Another claim came since: what that one wrote is unknown here.
    if (fold === null || epoch !== this.#truth.epoch) return
    if (!writeSnapshot(fold).equals(writeSnapshot(this.#truth.state)))
      this.#wrong.push(`the fold of the claim ${epoch} is not that of all commits`)
  }
}
