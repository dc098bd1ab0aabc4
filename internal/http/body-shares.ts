import type { Clock } from '../runtime/clock.ts'

/**
 * What the request bodies of a process may hold, and who of its holders (docs/architecture/protocol.md, "Connections"). A holder is
 * a customer, or the address of somebody unknown.
 *
 * Without pressure a body takes what it needs. Under pressure
 * - a holder may hold as much as it leaves free: alone half of all, two of them a third each. One body at a time needs
 *   nothing but room;
 * - bodies that have been arriving for long make room: the oldest of the holder that holds most, or of the same holder.
 *   So bodies that stand still keep nobody out: not others, and not their own customer, whose buffer anybody may know.
 */

/** A body that arrives in one go is here sooner than this, ms. */
const SLOW_MS = 2_000
/** This part of all is cleared at once. */
const CLEARED = 16

/** Where the bytes of one body are counted while they are held. */
export interface BodyRoom {
  /** Whether so many bytes more could be taken now. */
  has(bytes: number): boolean
  /** false: there is no room, and nothing is taken. */
  take(bytes: number): boolean
  giveBack(bytes: number): void
  /** The body stays incomplete for now. `giveUp` is called, once at most, when it has to make room: it gives back what it holds. */
  arrives(giveUp: () => void): void
  /** All of it is here, or nothing more is wanted: it makes room no more. */
  arrived(): void
}

/** For bodies that are bounded elsewhere. */
export const UNBOUNDED: BodyRoom = {
  has: () => true,
  take: () => true,
  giveBack: () => {},
  arrives: () => {},
  arrived: () => {},
}

export class BodyShares {
  readonly #all: Holders

  /** `limit`: bytes of all holders. */
  constructor(limit: number, clock: Pick<Clock, 'monotonic'>) {
    this.#all = new Holders(limit, clock)
  }

  /** Room for one body of a holder. */
  of(holder: string): BodyRoom {
    return new Room(this.#all, holder)
  }
}

/** What is held, and which bodies still arrive. */
class Holders {
  /** Bytes of whoever holds any. */
  readonly #held = new Map<string, number>()
  readonly arriving = new Set<Room>()
  readonly clock: Pick<Clock, 'monotonic'>
  readonly limit: number
  free: number

  constructor(limit: number, clock: Pick<Clock, 'monotonic'>) {
    this.limit = limit
    this.free = limit
    this.clock = clock
  }

  held(name: string): number {
    return this.#held.get(name) ?? 0
  }

  /** `bytes` of less than 0 are given back. */
  hold(name: string, bytes: number): void {
    const held = this.held(name) + bytes
    this.free -= bytes
    if (held === 0) this.#held.delete(name)
    else this.#held.set(name, held)
  }

  /** Slow bodies that make room for this holder once it holds so much: of who holds most first, then the largest. */
  slow(name: string, held: number): Room[] {
    const before = this.clock.monotonic() - SLOW_MS
    return [...this.arriving]
      .filter((room) => room.since <= before && (room.name === name || this.held(room.name) >= held))
      .sort((a, b) => this.held(b.name) - this.held(a.name) || b.own - a.own)
  }
}

class Room implements BodyRoom {
  readonly #all: Holders
  readonly name: string
  #giveUp = (): void => {}
  own = 0
  since = 0

  constructor(all: Holders, name: string) {
    this.#all = all
    this.name = name
  }

  has(bytes: number): boolean {
    return this.#fits(bytes) || this.#fitsWithout(this.#slow(bytes), bytes)
  }

  take(bytes: number): boolean {
    if (!this.#fits(bytes) && !this.#crowdOut(bytes)) return false
    this.#all.hold(this.name, bytes)
    this.own += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#all.hold(this.name, -bytes)
    this.own -= bytes
  }

  arrives(giveUp: () => void): void {
    this.#giveUp = giveUp
    this.since = this.#all.clock.monotonic()
    this.#all.arriving.add(this)
  }

  arrived(): void {
    this.#all.arriving.delete(this)
  }

  /** Once others have given back so many bytes, of them `ours` of the same holder. */
  #fits(bytes: number, freed = 0, ours = 0): boolean {
    const free = this.#all.free + freed - bytes
    const held = this.#all.held(this.name) - ours
    return free >= 0 && (held <= this.own || held + bytes <= free)
  }

  #fitsWithout(gone: readonly Room[], bytes: number): boolean {
    return this.#fits(bytes, sumOf(gone), sumOf(gone.filter((room) => room.name === this.name)))
  }

  #crowdOut(bytes: number): boolean {
    const slow = this.#slow(bytes)
    if (!this.#fitsWithout(slow, bytes)) return false
    // For those that come next, too: to look for room costs more than to take it.
    const wanted = Math.max(bytes, this.#all.limit / CLEARED)
    for (const room of slow) {
      if (this.#fits(wanted)) break
      room.#giveUp()
    }
    return true
  }

  #slow(bytes: number): Room[] {
    const held = this.#all.held(this.name) + bytes
    return this.#all.slow(this.name, held).filter((room) => room !== this)
  }
}

function sumOf(bodies: readonly Room[]): number {
  return bodies.reduce((sum, { own }) => sum + own, 0)
}
