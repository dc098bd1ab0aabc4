/** The senders' side: packs into the inbox, sent again when an answer was lost, verdicts heard and asked for. */
import { groupToken } from '../../../internal/domain/group.ts'
import { encodePack, type PackItem } from '../../../internal/domain/pack.ts'
import { BUFFERS } from './buffers.ts'
import type { Events } from './events.ts'
import { type Inquired, Inquiry } from './inquiry.ts'
import type { World } from './world.ts'

/** A pack as it is appended, again and again until it is answered. */
interface Sent {
  readonly data: Uint8Array
  readonly msgId: string
  readonly items: readonly PackItem[]
}

/** A stored item that its sender was told 202 for. */
export interface Accepted {
  readonly item: PackItem
  readonly seq: number
  readonly index: number
}

/** An append is repeated for so long at most; purges stay further behind, ms. */
export const REPEATS_MS = 900
/** A broker stands still for so long at most, ms. */
const STILL_MS = 6_000
const SHARES: [share: number, uid: string][] = [
  [0.5, BUFFERS.plain],
  [0.2, BUFFERS.paused],
  [0.16, BUFFERS.parallel],
  [0.08, BUFFERS.deleted],
  [0.06, BUFFERS.removed],
]

export class Ingress {
  /** In the order of the inbox; those that it lost with the power are none. */
  accepted: Accepted[] = []
  /** Every item that was ever accepted. */
  readonly all: PackItem[] = []
  /** Ids of those in `accepted`. */
  #standing = new Set<string>()
  /** Item ids whose senders were told `duplicate`. */
  readonly told = new Set<string>()
  /** Of packs with explicit items. */
  readonly #inquiries: Inquiry[] = []
  readonly #world: World
  readonly #events: Events
  readonly #until: number
  #packs = 0
  #items = 0
  #last: { readonly sent: Sent; readonly seq: number } | null = null
  /** Nobody answered it, and the next pack waits for that. */
  #unanswered: Sent | null = null

  /** Sends from now until `until`, virtual ms. */
  constructor(world: World, until: number) {
    this.#world = world
    this.#events = world.events
    this.#until = until
    this.#events.after(1, () => this.#send())
  }

  /** Packs whose senders still wait to be told of duplicates. */
  get unanswered(): number {
    return this.#inquiries.filter(({ over }) => !over).length
  }

  get #down(): boolean {
    return this.#world.downUntil > this.#events.now
  }

  /**
   * After a power cut: the inbox lost what stood from this sequence on. What was answered is not sent again; the last pack may not
   * have been.
   */
  lost(from: number): void {
    this.accepted = this.accepted.filter(({ seq }) => seq < from)
    this.#standing = new Set(this.accepted.map(({ item }) => item.itemId))
    for (const inquiry of this.#inquiries) inquiry.lost(from)
    if (this.#last && this.#last.seq >= from && this.#events.random() < 0.5)
      this.#unanswered = this.#last.sent
  }

  #send(): void {
    const events = this.#events
    if (events.now > this.#until) return
    if (this.#down) {
      events.after(this.#world.downUntil - events.now, () => this.#send())
      return
    }
    if (this.#unanswered) this.#append(this.#unanswered)
    this.#unanswered = null
    const number = ++this.#packs
    const items = Array.from({ length: events.between(1, 4) }, () => this.#item())
    const reply = `verdicts.${number}`
    const explicit = items.some((each) => each.explicit)
    const packId = Buffer.from(`pack${String(number).padStart(8, '0')}`)
    const awaited = explicit && events.random() < 0.9
    const data = encodePack(packId, awaited ? reply : null, items)
    const sent = { data, msgId: `p${number}`, items }
    const seq = this.#append(sent)
    this.#last = { sent, seq }
    this.all.push(...items)
    if (explicit) this.#inquire({ number, seq, items, reply, awaited })
    if (events.random() < 0.2) this.#later(events.between(50, REPEATS_MS), () => this.#repeat(sent))
    if (events.random() < 0.05) this.#later(events.between(50, STILL_MS), () => this.#storeAgain(sent))
    events.after(events.between(5, 60), () => this.#send())
  }

  /** Nothing that is on its way outlives a power cut. */
  #later(ms: number, task: () => void): void {
    const { powerCuts } = this.#world
    this.#events.after(ms, () => {
      if (powerCuts === this.#world.powerCuts) task()
    })
  }

  /** The PubAck was lost; maybe with the broker, which then knows only the ids of what it still stores. */
  #repeat(sent: Sent): void {
    if (this.#events.random() < 0.1) this.#world.inbox.restart()
    this.#append(sent)
  }

  /** A broker that stood still goes on with a repeat in its socket. */
  #storeAgain(sent: Sent): void {
    this.#world.inbox.forget(sent.msgId)
    this.#append(sent)
  }

  /** Accepted is what stands there for the first time, or again where the inbox had lost it. */
  #append({ data, msgId, items }: Sent): number {
    const answer = this.#world.appendInbox(data, msgId)
    if (answer.kind !== 'stored') throw new Error('the inbox took no pack')
    const { seq } = answer
    if (this.#standing.has(items[0]!.itemId)) return seq
    this.accepted.push(...items.map((item, index) => ({ item, seq, index })))
    for (const { itemId } of items) this.#standing.add(itemId)
    return seq
  }

  #inquire(pack: Inquired): void {
    this.#inquiries.push(new Inquiry(this.#world, pack, (itemId) => this.told.add(itemId)))
  }

  #item(): PackItem {
    const { random } = this.#events
    const number = this.#items++
    const bufferUid = chosen(random())
    const groupKey = `g${Math.floor(random() * 2)}`
    const explicit = random() < 0.4
    const itemId = `22222222-2222-4222-8222-${String(number).padStart(12, '0')}`
    const pad = 'x'.repeat(Math.floor(random() * 120))
    return {
      itemId,
      bufferUid,
      groupToken: groupToken(bufferUid, groupKey),
      groupKey,
      messageId: explicit ? `m${Math.floor(random() * 6)}` : itemId,
      explicit,
      credits: 1,
      receivedAt: 1_700_000_000_000 + number,
      payload: Buffer.from(JSON.stringify({ k: groupKey, id: `i${number}`, pad })),
    }
  }
}

function chosen(luck: number): string {
  let left = luck
  for (const [share, uid] of SHARES) {
    left -= share
    if (left < 0) return uid
  }
  return BUFFERS.plain
}
