/**
 * An actor node: runs the shards that the plan gives it. Whatever happens sets one flag, and one loop plans anew
 * from scratch (docs/architecture/protocol.md, "Placement"): membership, the own lease, a shard that was fenced, or a
 * second gone by.
 */

import { DeadlineError, withDeadline } from '../../runtime/deadline.ts'
import { Semaphore } from '../../runtime/semaphore.ts'
import { LARGE_WRITES_AT_ONCE } from '../batches/dead-letter-write.ts'
import type { ShardOptions } from '../options.ts'
import { Shard } from '../shard.ts'
import { Claims } from './claims.ts'
import { GracefulStop } from './graceful-stop.ts'
import type { Lease, Membership, Webhooks } from './membership.ts'
import { placeShards } from './placement.ts'
import { Settling } from './settling.ts'
import { ShardSupervisor } from './shard-supervisor.ts'

export interface ActorNodeOptions extends Omit<ShardOptions, 'shard' | 'claim' | 'largeWrites' | 'onEnd'> {
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

export class ActorNode {
  readonly #options: ActorNodeOptions
  readonly #claims: Claims
  readonly #settling: Settling
  readonly #gracefulStop: GracefulStop
  readonly #supervisors = new Map<number, ShardSupervisor>()
  readonly #largeWrites = new Semaphore(LARGE_WRITES_AT_ONCE)
  /** Hand-overs with their shards, until the results of the last attempts are known to the next owner. */
  readonly #handOvers = new Map<Promise<void>, number>()
  readonly #unsubscribe: () => void
  /** Shards whose journal is being looked at before a claim. */
  readonly #asking = new Set<number>()
  #claimed = 0
  /** Lapses of the own lease that the shards were paused for. */
  #lapses = 0
  #steering = false
  #stopping = false
  #cancelLook: () => void = () => {}

  constructor(options: ActorNodeOptions) {
    this.#options = options
    const { boot, broker, clock, membership, isOver = () => false, settleMs = SETTLE_MS } = options
    this.#claims = new Claims({ boot, broker, clock, membership, isOver })
    this.#settling = new Settling(clock, settleMs)
    this.#gracefulStop = new GracefulStop({
      clock,
      membership,
      others: () => this.#actors().length > 0,
      senders: () => this.#senders(['taken', 'ending']),
      handingOver: () => this.#handOvers.size > 0,
      released: () => this.#released(),
      takeBack: (number, leftMs) => this.#takeBack(number, leftMs),
    })
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
    const { clock } = this.#options
    const deadline = clock.monotonic() + timeoutMs
    await this.#gracefulStop.announce()
    this.#unsubscribe()
    const leftMs = Math.max(0, deadline - clock.monotonic())
    const others = this.#actors().length > 0
    const ends: Promise<void>[] = []
    for (const [number, supervisor] of this.#supervisors) {
      if (supervisor.leaving) continue
      if (others) this.#handOver(number, supervisor, leftMs)
      else ends.push(this.#stopInPlace(supervisor, leftMs))
    }
    await Promise.all([...ends, this.#gracefulStop.seeOff(deadline)])
  }

  #released(): Set<number> {
    return new Set([...this.#handOvers.values()].filter((number) => !this.#supervisors.has(number)))
  }

  /** Unless somebody has it, or it cannot be known. */
  async #takeBack(number: number, leftMs: () => number): Promise<void> {
    const may = await this.#claims.mayClaim(number).catch(() => false)
    if (!may || this.#supervisors.has(number) || leftMs() <= 0) return
    // The claim is bounded by the stop.
    void this.#supervise(number)
    const supervisor = this.#supervisors.get(number)
    if (supervisor) await this.#stopInPlace(supervisor, leftMs())
  }

  /** With nobody to take it over: who is about to stop gets its verdicts from here, or never. */
  #stopInPlace(supervisor: ShardSupervisor, leftMs: number): Promise<void> {
    return supervisor.stop(leftMs, () => this.#senders(['ending']))
  }

  #senders(states: readonly Webhooks[]): boolean {
    const { membership, boot, isOver = () => false } = this.#options
    const others = membership.leases().filter((lease) => lease.boot !== boot && !isOver(lease.boot))
    return others.some(({ webhooks }) => states.includes(webhooks))
  }

  /** Shards of this node that do not run, with their reasons. */
  troubles(): { shard: number; trouble: string }[] {
    return [...this.#supervisors].flatMap(([shard, { trouble }]) =>
      trouble === null ? [] : [{ shard, trouble }],
    )
  }

  /** All that it runs, or tries to run. */
  supervisors(): Iterable<readonly [number, ShardSupervisor]> {
    return this.#supervisors
  }

  /** What runs here. */
  *running(): Generator<[number, Shard]> {
    for (const [number, { shard }] of this.#supervisors) if (shard) yield [number, shard]
  }

  shard(number: number): Shard | null {
    return this.#supervisors.get(number)?.shard ?? null
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
    const { membership, shards, boot, clock } = this.#options
    this.#cancelLook()
    this.#cancelLook = clock.after(LOOK_EVERY_MS, () => this.#look())
    this.#pauseByLease()
    if (!membership.held) return
    const members = this.#actors()
    this.#settling.note(members)
    const { leftMs } = this.#settling
    // Nobody else is there to move anything from or to.
    const alone = members.every((lease) => lease.boot === boot)
    const waits = leftMs > 0 && !alone
    if (waits) {
      this.#cancelLook()
      this.#cancelLook = clock.after(Math.min(leftMs, LOOK_EVERY_MS), () => this.#look())
    }
    const placed = waits ? this.#settling.previous(members) : members
    const plan = placeShards(
      shards,
      placed.map((lease) => (lease.boot === boot ? { boot, shards: [...this.#supervisors.keys()] } : lease)),
    )
    await this.#carryOut(plan)
  }

  /** A lease that lapsed and is held again pauses all the same: what follows a pause is proven first. */
  #pauseByLease(): void {
    const { membership } = this.#options
    const lapsed = membership.lapses !== this.#lapses
    this.#lapses = membership.lapses
    for (const supervisor of this.#supervisors.values()) {
      if (lapsed) supervisor.pause(true)
      supervisor.pause(!membership.held)
    }
  }

  /** Whether an attempt may begin: the lease is held, and each lapse of it has paused the shards. */
  #holds(): boolean {
    const { membership } = this.#options
    return membership.held && membership.lapses === this.#lapses
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

  async #carryOut(plan: readonly (string | null)[]): Promise<void> {
    const { boot } = this.#options
    const claims: Promise<void>[] = []
    for (const [number, owner] of plan.entries()) {
      const supervisor = this.#supervisors.get(number)
      if (owner === boot && !supervisor) claims.push(this.#claim(number))
      else if (owner !== boot && owner !== null && supervisor && !supervisor.leaving)
        this.#handOver(number, supervisor)
    }
    await Promise.all(claims)
  }

  async #claim(number: number): Promise<void> {
    if (this.#asking.has(number)) return
    this.#asking.add(number)
    try {
      const may = await this.#claims.mayClaim(number)
      if (!may || this.#stopping || this.#supervisors.has(number)) return
    } catch (error) {
      this.#problem(number, 'the owner of a shard cannot be read', error)
      return
    } finally {
      this.#asking.delete(number)
    }
    await this.#supervise(number)
  }

  async #supervise(number: number): Promise<void> {
    const { clock, telemetry, membership } = this.#options
    const supervisor: ShardSupervisor = new ShardSupervisor({
      number,
      clock,
      telemetry,
      create: (onEnd) => {
        const own = { largeWrites: this.#largeWrites, holds: () => this.#holds(), onEnd }
        return new Shard({ ...this.#options, ...own, shard: number, claim: ++this.#claimed })
      },
      onFenced: () => {
        if (this.#supervisors.get(number) === supervisor) this.#left(number)
      },
    })
    this.#supervisors.set(number, supervisor)
    supervisor.pause(!membership.held)
    this.#announce()
    await supervisor.start()
  }

  #handOver(number: number, supervisor: ShardSupervisor, timeoutMs = HAND_OVER_MS): void {
    const handOver = supervisor
      .handOver(timeoutMs, () => this.#left(number))
      .catch((error: unknown) => this.#problem(number, 'a hand-over failed', error))
      .finally(() => this.#handOvers.delete(handOver))
    this.#handOvers.set(handOver, number)
  }

  #problem(shard: number, what: string, error: unknown): void {
    this.#options.telemetry.problem({ shard, what, error: String(error) })
  }

  #left(number: number): void {
    this.#supervisors.delete(number)
    this.#announce()
    this.#look()
  }

  #announce(): void {
    const shards = [...this.#supervisors.keys()].sort((a, b) => a - b)
    this.#options.membership.announce({ shards })
  }
}
