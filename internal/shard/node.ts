/**
 * An actor node: runs the shards that the plan gives it. Whatever happens sets one flag, and one loop plans anew
 * from scratch (design, section 4): membership, the own lease, a shard that was fenced, or a second gone by.
 */
import { DeadlineError, withDeadline } from '../runtime/deadline.ts'
import { Claims } from './claims.ts'
import type { Lease, Membership } from './membership.ts'
import { placeShards } from './placement.ts'
import { Seat } from './seat.ts'
import { Shard, type ShardOptions } from './shard.ts'

export interface ActorNodeOptions extends Omit<ShardOptions, 'shard' | 'claim' | 'onEnd'> {
  /** Shards of the installation. */
  readonly shards: number
  readonly membership: Membership
  /** Runs of this program that are over for certain, whatever their leases say. Default: none. */
  readonly isOver?: (boot: string) => boolean
  /** How long the members must have been the same before shards move, ms. Default 2,000. */
  readonly settleMs?: number
  /** So long the first claims may take before the node does without them, ms; they go on. Default 10,000. */
  readonly firstClaimsMs?: number
}

const SETTLE_MS = 2_000
/** The loop looks again, for what nobody tells it: owners that are gone, leases that changed while it was away. */
const LOOK_EVERY_MS = 1_000
/** A hand-over may take as long as the attempts that run. */
const HAND_OVER_MS = 12_000
const FIRST_CLAIMS_MS = 10_000
/** Whoever stops waits until nobody has said anything for so long, in all at most, ms. */
const OTHERS_QUIET_MS = 300
const OTHERS_WAIT_MS = 1_000
const POLL_MS = 20
/** Joins begin the time of settling anew for so many times of it at most. */
const MOST_SETTLES = 5
/** Whether a shard has to be taken back is asked in each so many of these; not any more with less time than this left, ms. */
const TAKE_BACK_ROUNDS = 15
const TAKE_BACK_MS = 1_000

export class ActorNode {
  readonly #options: ActorNodeOptions
  readonly #claims: Claims
  readonly #seats = new Map<number, Seat>()
  /** Hand-overs with their shards, until the results of the last attempts are known to the next owner. */
  readonly #leaving = new Map<Promise<void>, number>()
  readonly #unsubscribe: () => void
  /** Shards whose journal is being looked at before a claim. */
  readonly #asking = new Set<number>()
  #claimed = 0
  #members: ReadonlySet<string> = new Set()
  #membersSince = Number.NEGATIVE_INFINITY
  #unsettledSince = Number.NEGATIVE_INFINITY
  /** Who was a member already when the last ones joined. */
  #veterans: ReadonlySet<string> = new Set()
  #steering = false
  #stopping = false
  #cancelLook: () => void = () => {}

  constructor(options: ActorNodeOptions) {
    this.#options = options
    const { boot, broker, clock, membership, isOver = () => false } = options
    this.#claims = new Claims({ boot, broker, clock, membership, isOver })
    this.#unsubscribe = membership.onChange(() => this.#look())
  }

  /**
   * Claims what it should run and may; resolves when each of those shards runs or has failed once, or after a while: one
   * whose broker takes nothing, or that has much to read, does not keep the node from everything else.
   */
  async start(): Promise<void> {
    const { clock, firstClaimsMs = FIRST_CLAIMS_MS } = this.#options
    const claims = this.#steer()
    await withDeadline(clock, firstClaimsMs, claims).catch((error: unknown) => {
      if (!(error instanceof DeadlineError)) throw error
    })
  }

  /**
   * Lets all shards go, within `timeoutMs`: to the other nodes when there are any that stay, else in good order for the
   * next start.
   */
  async stop(timeoutMs: number): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    this.#cancelLook()
    const { clock, membership } = this.#options
    const deadline = clock.monotonic() + timeoutMs
    membership.announce({ accepting: false })
    await this.#othersSettled()
    this.#unsubscribe()
    const leftMs = Math.max(0, deadline - clock.monotonic())
    const others = this.#actors().length > 0
    const ends: Promise<void>[] = []
    for (const [number, seat] of this.#seats) {
      if (seat.leaving) continue
      if (others) this.#handOver(number, seat, leftMs)
      else ends.push(seat.stop(leftMs))
    }
    await Promise.all([...ends, this.#seeOff(deadline)])
  }

  /**
   * Until what was handed over, now or before, has ended and somebody has taken note of what its attempts brought. Whoever was to
   * take it may be stopping as well: with nobody else left it is taken back.
   */
  async #seeOff(deadline: number): Promise<void> {
    const { clock } = this.#options
    const leftMs = () => deadline - clock.monotonic()
    const back = new Set<Promise<void>>()
    for (let round = 0; this.#leaving.size > 0 && leftMs() > 0; round++) {
      const released = new Set([...this.#leaving.values()].filter((number) => !this.#seats.has(number)))
      if (round % TAKE_BACK_ROUNDS === 0 && this.#actors().length === 0 && leftMs() > TAKE_BACK_MS)
        for (const number of released) back.add(this.#takeBack(number, leftMs))
      await new Promise<void>((resume) => clock.after(POLL_MS, resume))
    }
    await Promise.all(back)
  }

  /** Unless somebody has it, or it cannot be known. */
  async #takeBack(number: number, leftMs: () => number): Promise<void> {
    const owner = await this.#claims.ownerOf(number).catch((error: unknown) => String(error))
    if (owner !== null || this.#seats.has(number) || leftMs() <= 0) return
    // The claim is bounded by the stop.
    void this.#sit(number)
    await this.#seats.get(number)?.stop(leftMs())
  }

  /**
   * Often all nodes are told to stop at once. Shards that they handed to each other would be nobody's, and results of attempts
   * that run would be lost: so each says that it takes none any more, and listens before it decides.
   */
  async #othersSettled(): Promise<void> {
    const { clock, membership } = this.#options
    const end = clock.monotonic() + OTHERS_WAIT_MS
    let quietAt = clock.monotonic() + OTHERS_QUIET_MS
    const unsubscribe = membership.onChange(() => {
      quietAt = clock.monotonic() + OTHERS_QUIET_MS
    })
    while (clock.monotonic() < Math.min(quietAt, end) && this.#actors().length > 0)
      await new Promise<void>((resume) => clock.after(POLL_MS, resume))
    unsubscribe()
  }

  /** Shards of this node that do not run, with their reasons. */
  troubles(): { shard: number; trouble: string }[] {
    return [...this.#seats].flatMap(([shard, { trouble }]) => (trouble === null ? [] : [{ shard, trouble }]))
  }

  /** All that it runs, or tries to run. */
  seats(): Iterable<readonly [number, Seat]> {
    return this.#seats
  }

  /** What runs here. */
  *running(): Generator<[number, Shard]> {
    for (const [number, { shard }] of this.#seats) if (shard) yield [number, shard]
  }

  shard(number: number): Shard | null {
    return this.#seats.get(number)?.shard ?? null
  }

  #look(): void {
    if (this.#steering || this.#stopping) return
    this.#steering = true
    // Changes that arrive together are one.
    queueMicrotask(() => {
      this.#steering = false
      if (!this.#stopping) void this.#steer()
    })
  }

  /** Resolves when what it claims runs or has failed once. */
  async #steer(): Promise<void> {
    const { membership, shards, boot, clock, settleMs = SETTLE_MS } = this.#options
    this.#cancelLook()
    this.#cancelLook = clock.after(LOOK_EVERY_MS, () => this.#look())
    for (const seat of this.#seats.values()) seat.pause(!membership.held)
    if (!membership.held) return
    const members = this.#actors()
    this.#noteMembers(members)
    const settled = this.#membersSince + settleMs - clock.monotonic()
    // Nobody else is there to move anything from or to.
    const alone = members.every((lease) => lease.boot === boot)
    const waits = settled > 0 && !alone
    if (waits) {
      this.#cancelLook()
      this.#cancelLook = clock.after(Math.min(settled, LOOK_EVERY_MS), () => this.#look())
    }
    const placed = waits ? members.filter((lease) => this.#veterans.has(lease.boot)) : members
    const plan = placeShards(
      shards,
      placed.map((lease) => (lease.boot === boot ? { boot, shards: [...this.#seats.keys()] } : lease)),
    )
    await this.#carryOut(plan)
  }

  /** The nodes that take shards. A lease may outlive its process. */
  #actors(): Lease[] {
    const { membership, boot, isOver = () => false } = this.#options
    return membership
      .leases()
      .filter(({ role, accepting }) => (role === 'actor' || role === 'penstock') && accepting)
      .filter((lease) => !isOver(lease.boot))
      .filter((lease) => lease.boot !== boot || !this.#stopping)
  }

  /**
   * Only who joins makes shards move between nodes that live, and others may follow at once: that settles first.
   * What nobody has any more is taken without delay, meanwhile by those who were members before.
   */
  #noteMembers(members: readonly Lease[]): void {
    const { clock, settleMs = SETTLE_MS } = this.#options
    const joined = members.some(({ boot }) => !this.#members.has(boot))
    const now = clock.monotonic()
    const settled = now >= this.#membersSince + settleMs
    if (joined && settled) {
      this.#veterans = this.#members
      this.#unsettledSince = now
    }
    this.#members = new Set(members.map(({ boot }) => boot))
    // One that starts again and again must not keep the others from it for ever: those from before may be gone.
    const restarts = settled || now < this.#unsettledSince + MOST_SETTLES * settleMs
    if (joined && restarts) this.#membersSince = now
  }

  async #carryOut(plan: readonly (string | null)[]): Promise<void> {
    const { boot } = this.#options
    const claims: Promise<void>[] = []
    for (const [number, owner] of plan.entries()) {
      const seat = this.#seats.get(number)
      if (owner === boot && !seat) claims.push(this.#claim(number))
      else if (owner !== boot && owner !== null && seat && !seat.leaving) this.#handOver(number, seat)
    }
    await Promise.all(claims)
  }

  async #claim(number: number): Promise<void> {
    if (this.#asking.has(number)) return
    this.#asking.add(number)
    try {
      const owner = await this.#claims.ownerOf(number)
      if (owner !== null || this.#stopping || this.#seats.has(number)) return
    } catch (error) {
      this.#problem(number, 'the owner of a shard cannot be read', error)
      return
    } finally {
      this.#asking.delete(number)
    }
    await this.#sit(number)
  }

  async #sit(number: number): Promise<void> {
    const { clock, telemetry, membership } = this.#options
    const seat: Seat = new Seat({
      ...{ number, clock, telemetry },
      create: (onEnd) => {
        const holds = () => membership.held
        return new Shard({ ...this.#options, holds, shard: number, claim: ++this.#claimed, onEnd })
      },
      onFenced: () => {
        if (this.#seats.get(number) === seat) this.#left(number)
      },
    })
    this.#seats.set(number, seat)
    seat.pause(!membership.held)
    this.#announce()
    await seat.start()
  }

  #handOver(number: number, seat: Seat, timeoutMs = HAND_OVER_MS): void {
    const leaving = seat
      .handOver(timeoutMs, () => this.#left(number))
      .catch((error: unknown) => this.#problem(number, 'a hand-over failed', error))
      .finally(() => this.#leaving.delete(leaving))
    this.#leaving.set(leaving, number)
  }

  #problem(shard: number, what: string, error: unknown): void {
    this.#options.telemetry.problem({ shard, what, error: String(error) })
  }

  #left(number: number): void {
    this.#seats.delete(number)
    this.#announce()
    this.#look()
  }

  #announce(): void {
    const shards = [...this.#seats.keys()].sort((a, b) => a - b)
    this.#options.membership.announce({ shards })
  }
}
