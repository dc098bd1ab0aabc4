/**
 * When an attempt may begin, and which number it has (docs/architecture/protocol.md, "Attempts"). A batch has
 * `maxAttempts` numbers, and only a fault that cuts an attempt off lets the same number begin again.
 */
import type { BufferRecord } from '../../../../internal/domain/model.ts'
import { ATTEMPT_MS } from '../../../../internal/shard/batches/attempts.ts'
import { batchKey } from '../../../../internal/shard/journal/batch-name.ts'
import type { JournalRecord, ReleaseRecord } from '../../../../internal/shard/journal/records.ts'
import type { OpenBatch } from '../../../../internal/shard/journal/state.ts'
import type { AttemptResult } from '../../../../internal/shard/ports.ts'
import type { Owner } from '../owner.ts'
import type { Judge, Taken, Truth } from '../truth.ts'

/** So long whoever lets go waits for dead letters on their way, at least, ms. */
const DEAD_LETTERS_MS = 500

/** One request to the destination: its owner can withdraw it no more. */
export interface Attempt {
  /** Of the batch, as `batchKey`. */
  readonly batch: string
  readonly owner: Owner
  readonly number: number
  readonly maxAttempts: number
  /** What its owner was answered; null: nothing yet. */
  result: AttemptResult | null
}

export class AttemptJudge implements Judge {
  readonly #truth: Truth
  readonly #wrong: string[]
  readonly #now: () => number
  readonly #isDead: (batch: string) => boolean
  /** The number at which each open batch is for an owner, by its epoch: what it found or committed itself. */
  readonly #numbers = new Map<number, Map<string, number>>()
  readonly #attempts = new Map<string, Attempt[]>()
  /** What the last release named, with its attempt: nobody repeats it before the deadline. */
  #released = new Map<string, { readonly attempt: Attempt | undefined; readonly deadline: number }>()

  /** `isDead`: Postgres holds it as a dead letter, or held it until a user deleted it, and its record was not lost. */
  constructor(truth: Truth, wrong: string[], now: () => number, isDead: (batch: string) => boolean) {
    this.#truth = truth
    this.#wrong = wrong
    this.#now = now
    this.#isDead = isDead
  }

  /** `key`: its idempotency key. */
  began(owner: Owner, key: string, record: BufferRecord): Attempt {
    const { buffer } = record
    const batch = key.replace(/^grp:(.*):v(\d+)$/, '$1:$2')
    const { maxAttempts } = buffer.throughput
    const attempt = { batch, owner, number: this.numberOf(owner, batch), maxAttempts, result: null }
    if (!owner.killed && !owner.misled) {
      for (const why of this.#against(attempt, record))
        this.#wrong.push(`attempt ${attempt.number} of ${batch} began ${why}`)
    }
    this.#attempts.set(batch, [...this.of(batch), attempt])
    return attempt
  }

  ended(attempt: Attempt, result: AttemptResult): void {
    attempt.result = result
  }

  of(batch: string): readonly Attempt[] {
    return this.#attempts.get(batch) ?? []
  }

  /** 0: the owner has no such batch. */
  numberOf({ epoch }: Owner, batch: string): number {
    return this.#numbers.get(epoch)?.get(batch) ?? 0
  }

  took(record: JournalRecord, { epoch, applied, seq }: Taken): void {
    const numbers = this.#numbers.get(epoch)
    if (record.type === 'epoch') this.#numbers.set(epoch, this.#found())
    else if (record.type === 'seal') numbers?.set(batchKey({ groupId: record.groupId, version: seq }), 1)
    else if (record.type === 'release') this.#release(record, epoch)
    else if (record.type === 'attempt') {
      if (applied) numbers?.set(batchKey(record), record.attempt)
      else this.#wrong.push(`attempt ${record.attempt} of ${batchKey(record)} was known when it was written`)
    }
  }

  /** Attempts were made, whatever is committed. */
  forget(): void {
    this.#numbers.clear()
    this.#released = new Map()
  }

  #found(): Map<string, number> {
    return new Map([...this.#truth.state.batches].map(([key, { attempt }]) => [key, attempt]))
  }

  #against(attempt: Attempt, { uid, version }: BufferRecord): string[] {
    const { owner, number, maxAttempts, batch } = attempt
    const { claims, epoch } = this.#truth
    const before = this.of(batch).filter((other) => other.number === number)
    const replaced = claims.some((claim) => claim.epoch > owner.epoch && claim.at < owner.certainSince)
    const rules: [broken: boolean, why: string][] = [
      [owner.uncertain, 'while its node was not certain of its lease'],
      [replaced, 'after a pause, without a proof that nobody else has the shard'],
      [!owner.buffers.get(uid)?.buffer.enabled, 'while its buffer was disabled'],
      [owner.buffers.get(uid)?.version !== version, 'with what its buffer was before'],
      [number > maxAttempts, `although ${maxAttempts} are allowed`],
      [before.some((other) => other.owner === owner), 'again, without a fault'],
      [owner.epoch === epoch && this.#isDead(batch), 'although it is a dead letter'],
      [owner.epoch === epoch && this.#isInFlight(attempt), 'while the last owner had it in flight'],
      [owner.epoch === epoch && this.#overtakes(attempt, uid), 'before an older batch of its group was over'],
    ]
    return rules.flatMap(([broken, why]) => (broken ? [why] : []))
  }

  #isInFlight({ batch, number }: Attempt): boolean {
    const released = this.#released.get(batch)
    return released?.attempt?.number === number && released.deadline > this.#now()
  }

  #overtakes({ batch, owner }: Attempt, uid: string): boolean {
    const { batches } = this.#truth.state
    const own = batches.get(batch)
    if (!own) return true
    if (!owner.buffers.isSerial(uid)) return false
    const isOlder = ({ groupId, version }: OpenBatch) => groupId === own.groupId && version < own.version
    // The owner goes on while the `done` of a delivered one is on its way.
    return [...batches.values()].some((other) => isOlder(other) && !this.#isDelivered(batchKey(other)))
  }

  #isDelivered(batch: string): boolean {
    return this.of(batch).some(({ result }) => result?.delivered)
  }

  /** It names all attempts whose results are not in the journal, but for dead letters that take long. */
  #release({ batches }: ReleaseRecord, epoch: number): void {
    // By the clock of its owner, which may be ahead.
    const latest = this.#now() + ATTEMPT_MS
    const deadlines = new Map(batches.map((each) => [batchKey(each), Math.min(each.deadline, latest)]))
    for (const [batch, number] of this.#numbers.get(epoch) ?? []) {
      const attempt = this.#lastOf(epoch, batch, number)
      if (!attempt || deadlines.has(batch) || !this.#truth.state.batches.has(batch)) continue
      if (!this.#mayLeave(attempt))
        this.#wrong.push(`the release ${epoch} leaves out attempt ${number} of ${batch}`)
    }
    const known = this.#released
    for (const batch of deadlines.keys()) {
      const number = this.#numbers.get(epoch)?.get(batch) ?? 0
      if (!known.has(batch) && !this.#lastOf(epoch, batch, number))
        this.#wrong.push(`the release ${epoch} names ${batch}, which does not run`)
    }
    this.#released = new Map(
      [...deadlines].map(([batch, deadline]) => {
        const number = this.#numbers.get(epoch)?.get(batch) ?? 0
        return [batch, { attempt: this.#lastOf(epoch, batch, number) ?? known.get(batch)?.attempt, deadline }]
      }),
    )
  }

  #lastOf(epoch: number, batch: string, number: number): Attempt | undefined {
    return this.of(batch).findLast((attempt) => attempt.owner.epoch === epoch && attempt.number === number)
  }

  #mayLeave({ result, owner, number, maxAttempts }: Attempt): boolean {
    const failed = result !== null && !result.delivered && (!result.retryable || number >= maxAttempts)
    return failed && owner.leavingSince !== null && this.#now() - owner.leavingSince >= DEAD_LETTERS_MS
  }
}
