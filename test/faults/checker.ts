/**
 * Judges the history of a fault run (docs/reference/guarantees.md): pure, and tested itself with histories that each
 * break one rule. It is asked after the faults are over and everything is drained. Each rule stands in a file of its own.
 */
import { checkBuffered, checkLost } from './checker-arrivals.ts'
import { checkAttempts, checkBackoff } from './checker-attempts.ts'
import { checkContents, checkInvented } from './checker-contents.ts'
import { checkCredits } from './checker-credits.ts'
import { checkDisabled } from './checker-disabled.ts'
import { checkDuplicates } from './checker-duplicates.ts'
import { checkFencing } from './checker-fencing.ts'
import { checkHeaders } from './checker-headers.ts'
import { checkBodies } from './checker-keys.ts'
import { checkLimits } from './checker-limits.ts'
import { checkOrder } from './checker-order.ts'
import { checkResent } from './checker-repeats.ts'
import { Evidence, type Violation } from './evidence.ts'
import type { History } from './history.ts'

/** A promise of docs/reference/guarantees.md, in its words, and what holds a history against it. */
export interface Rule {
  readonly promise: string
  readonly check: (evidence: Evidence) => Violation[]
}

export const RULES: readonly Rule[] = [
  {
    promise:
      'Every item answered 202 is delivered, is in the dead letter queue, or is a dropped duplicate of an item that is',
    check: checkLost,
  },
  { promise: 'Nothing stays buffered once destinations answer and faults are over', check: checkBuffered },
  {
    promise:
      'Nothing is invented: each item of a batch was sent to this buffer and group with these bytes, was not refused, and is in the batch once',
    check: checkInvented,
  },
  {
    promise:
      'The body of a batch is right about its buffer, group and segment, the times at which its items were received, and their number',
    check: checkContents,
  },
  {
    promise: 'An idempotency key always names the same body, and an item always stays under one key',
    check: checkBodies,
  },
  {
    promise:
      'Each attempt has the idempotency key of its batch and, with `delivery.signing`, the signature of exactly its body, in the headers that its buffer names',
    check: checkHeaders,
  },
  {
    promise:
      'A batch has at most `maxItems` items and `maxBytes` payload bytes; one item alone may have more bytes',
    check: checkLimits,
  },
  {
    promise:
      'A batch that was answered 2xx is sent again only when a fault cut off the record of that answer; a dead letter is not sent again',
    check: checkResent,
  },
  {
    promise:
      'A batch is attempted at most `maxAttempts` times, and once more for each fault that cut an attempt off',
    check: checkAttempts,
  },
  {
    promise:
      'The next attempt of a batch begins no earlier than its back-off after the answer that failed; only what a fault cut off is attempted at once',
    check: checkBackoff,
  },
  {
    promise: 'While a buffer is disabled, no attempt of its batches begins',
    check: checkDisabled,
  },
  {
    promise:
      'The batches of a group go out in the order of their versions, and its items in the order in which they were stored',
    check: checkOrder,
  },
  {
    promise:
      'A duplicate (same explicit id, same group) is dropped while its original is buffered, and only then; an item answered `duplicate` is never sent itself, and its original is',
    check: checkDuplicates,
  },
  {
    promise:
      'Items that go out are charged, duplicates are not; a fault never costs a credit, and gives away at most what was in flight',
    check: checkCredits,
  },
  {
    promise: 'After a claim of a shard, only the claimant writes into its journal',
    check: checkFencing,
  },
]

/** Every breach found; none: the history holds. */
export function check(history: History): Violation[] {
  const evidence = new Evidence(history)
  return RULES.flatMap((rule) => rule.check(evidence))
}
