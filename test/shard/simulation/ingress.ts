/** The senders' side: packs into the inbox, sent again when an answer was lost, verdicts heard and asked for. */
import { groupToken } from '../../../internal/domain/group.ts'
import { encodePack, type PackItem } from '../../../internal/domain/pack.ts'
import { BUFFERS } from './buffers.ts'
import type { Events } from './events.ts'
import { type Inquired, Inquiry } from './inquiry.ts'
import type { World } from './world.ts'

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
  readonly accepted: Accepted[] = []
  /** Item ids whose senders were told `duplicate`. */
  readonly told = new Set<string>()
  /** Of packs with explicit items. */
  readonly #inquiries: Inquiry[] = []
  readonly #world: World
  readonly #events: Events
  readonly #until: number
  #packs = 0
  #items = 0

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

  #send(): void {
    const events = this.#events
    if (events.now > this.#until) return
    const number = ++this.#packs
    const items = Array.from({ length: events.between(1, 4) }, () => this.#item())
    const reply = `verdicts.${number}`
    const explicit = items.some((each) => each.explicit)
    const packId = Buffer.from(`pack${String(number).padStart(8, '0')}`)
    const awaited = explicit && events.random() < 0.9
    const data = encodePack(packId, awaited ? reply : null, items)
    const seq = this.#append(data, `p${number}`)
    this.accepted.push(...items.map((item, index) => ({ item, seq, index })))
    if (explicit) this.#inquire({ seq, items, reply, awaited })
    if (events.random() < 0.2)
      events.after(events.between(50, REPEATS_MS), () => this.#repeat(data, `p${number}`))
    if (events.random() < 0.05)
      events.after(events.between(50, STILL_MS), () => this.#storeAgain(data, `p${number}`))
    events.after(events.between(5, 60), () => this.#send())
  }

  /** The PubAck was lost; maybe with the broker, which then knows only the ids of what it still stores. */
  #repeat(data: Uint8Array, msgId: string): void {
    if (this.#events.random() < 0.1) this.#world.inbox.restart()
    this.#append(data, msgId)
  }

  /** A broker that stood still goes on with a repeat in its socket. */
  #storeAgain(data: Uint8Array, msgId: string): void {
    this.#world.inbox.forget(msgId)
    this.#append(data, msgId)
  }

  #append(data: Uint8Array, msgId: string): number {
    const answer = this.#world.appendInbox(data, msgId)
    if (answer.kind !== 'stored') throw new Error('the inbox took no pack')
    return answer.seq
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
