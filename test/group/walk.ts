/**
 * One random walk: a shard in miniature that does whatever the numbers say, and at the end brings everything
 * to its end, ticking only when a wake is due, so that a missing wake shows as a group that never ends.
 */
import { type GroupPolicy, UNKNOWN } from '../../internal/group/model.ts'
import { Lockstep, type Pair } from './lockstep.ts'

/** One number as a sequence of small choices. */
class Choices {
  #rest: number

  constructor(number: number) {
    this.#rest = number
  }

  below(bound: number): number {
    const choice = this.#rest % bound
    this.#rest = Math.floor(this.#rest / bound)
    return choice
  }

  of<const T>(options: readonly T[]): T {
    return options[this.below(options.length)]!
  }
}

export class Walk {
  readonly #group: Lockstep
  #version = 1000

  constructor(policyNumber: number) {
    const choices = new Choices(policyNumber)
    this.#group = new Lockstep(
      choices.below(4) === 0 ? UNKNOWN : policyOf(choices, ['active']),
      1_000_000_000,
    )
  }

  get trace(): string {
    return this.#group.trace.join('\n')
  }

  run(numbers: readonly number[]): void {
    for (const number of numbers) this.#act(new Choices(number))
    this.#drain()
    this.#group.assertNothingLost()
  }

  #act(choices: Choices): void {
    const { now, earliestWake } = this.#group
    const action = choices.of([
      'item',
      'item',
      'item',
      'batch',
      'batch',
      'batch',
      'wake',
      'tick',
      'policy',
      'rare',
    ])
    if (action === 'item') this.#item(choices)
    else if (action === 'batch') this.#advance(choices)
    else if (action === 'wake') this.#group.step({ kind: 'tick', at: earliestWake ?? now })
    else if (action === 'tick')
      this.#group.step({ kind: 'tick', at: now + choices.of([0, 1, 99, 100, 101, 399, 1000]) })
    else if (action === 'policy') this.#policy(choices)
    else if (choices.below(2) === 0) this.#restore(choices)
    else this.#drop(choices)
  }

  #item(choices: Choices): void {
    const at = this.#group.now + choices.of([0, 0, 1, 40, 110, 700, -5, -5_000])
    const item = this.#group.newItem(
      choices.of([5, 10, 30, 49, 50, 120]),
      at - choices.of([0, 0, 0, 20, -20, 300]),
    )
    this.#group.step({ kind: 'item', at, item })
  }

  /** Something happens to one of the batches that wait for the shard. */
  #advance(choices: Choices): void {
    const { busy, now } = this.#group
    // The shard tells no result before the policy is known.
    if (busy.length === 0 || this.#group.policy.state === 'unknown') return
    const pair = choices.of(busy)
    const at = now + choices.of([0, 1, 30])
    const { phase } = pair.real
    const refused = choices.below(5) === 0
    if (refused && phase === 'sealing') this.#group.about(pair, { kind: 'unsealed', at })
    else if (refused && phase === 'delivering') {
      this.#group.about(pair, { kind: 'withdrawn', at, notBefore: at + choices.of([0, 200, -10]) })
    } else this.#answer(pair, at, choices.of(['delivered', 'delivered', 'retry', 'retry', 'rejected']))
  }

  #answer(pair: Pair, at: number, result: 'delivered' | 'retry' | 'rejected'): void {
    const { phase } = pair.real
    if (phase === 'delivering') this.#group.about(pair, { kind: 'result', at, result })
    else if (phase === 'sealing') this.#group.about(pair, { kind: 'sealed', at, version: ++this.#version })
    else this.#group.about(pair, { kind: phase === 'recording-attempt' ? 'attempt-recorded' : 'settled', at })
  }

  #policy(choices: Choices): void {
    const policy = policyOf(choices, ['active', 'active', 'active', 'held', 'held', 'discarding'])
    this.#group.step({ kind: 'policy', at: this.#group.now - choices.of([0, 0, 0, 900]), policy })
  }

  /** Versions older than every seal here, in any order among themselves. */
  #restore(choices: Choices): void {
    const { now: at, batchCount } = this.#group
    const items = Array.from({ length: 1 + choices.below(2) }, () => this.#group.newItem(10, at))
    const version = 1 + 2 * (batchCount % 200) + choices.of([0, 500])
    const nextAttemptAt = at + choices.of([-10, 0, 50, 90_000])
    const attempt = choices.below(4)
    this.#group.step({
      kind: 'restored',
      at,
      items,
      version,
      attempt,
      nextAttemptAt,
      segment: choices.below(4),
      running: choices.below(3) === 0,
    })
  }

  #drop(choices: Choices): void {
    const { waiting, now } = this.#group
    if (waiting.length > 0) this.#group.step({ kind: 'dropped', at: now, item: choices.of(waiting) })
  }

  /** From here on all goes well, and time passes only to the next wake. */
  #drain(): void {
    const { now, policy } = this.#group
    const known = policy.state === 'unknown' ? policyOf(new Choices(0), ['active']) : policy
    this.#group.step({ kind: 'policy', at: now, policy: { ...known, state: 'active' } })
    while (!this.#group.retired) {
      const { busy, earliestWake } = this.#group
      if (busy[0]) this.#answer(busy[0], this.#group.now, 'delivered')
      else if (earliestWake !== undefined) this.#group.step({ kind: 'tick', at: earliestWake })
      else throw new Error('nothing will ever happen again, and the group is not over')
    }
  }
}

function policyOf(choices: Choices, states: readonly GroupPolicy['state'][]): GroupPolicy {
  return {
    state: choices.of(states),
    maxItems: choices.of([2, 3, 1, 5]),
    maxBytes: choices.of([100, 1000, 50]),
    idleTimeoutMs: choices.of([100, 500]),
    maxWaitFromFirstMs: choices.of([400, 100, 1500]),
    maxGroupItems: choices.of([3, 100, 1, 2]),
    maxGroupBytes: choices.of([5000, 60, 0]),
    maxAttempts: choices.of([3, 1, 2]),
    backoff: { initialMs: choices.of([100, 0, 1000]), maxMs: 500, multiplier: choices.of([2, 1.5]) },
    minDelayBetweenFlushMs: choices.of([0, 300]),
    maxConcurrencyPerGroup: choices.of([1, 2, 3]),
  }
}
