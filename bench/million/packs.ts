/** Packs written straight into the inbox of shard 0, as an ingress under load would. */
import { randomBytes, randomUUID } from 'node:crypto'
import { groupToken } from '../../internal/domain/group.ts'
import { encodePack, type PackItem } from '../../internal/domain/pack.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { markerOf } from '../load/marker.ts'

const APPEND_MS = 10_000
const PAUSE_MS = 100

export interface Written {
  bufferUid: string
  groupKey: string
  /** Of the payload, bytes. */
  size: number
}

export class PackWriter {
  readonly #broker: Broker
  #items = 0

  constructor(broker: Broker) {
    this.#broker = broker
  }

  /** Items so far; the next one's marker. */
  get items(): number {
    return this.#items
  }

  /** One pack, again and again until the broker has it. Answers its bytes. */
  async write(items: readonly Written[]): Promise<number> {
    const packId = randomBytes(12)
    const frame = encodePack(
      packId,
      null,
      items.map((item) => this.#itemOf(item)),
    )
    const options = { subject: 'items.0.mixed', msgId: packId.toString('base64url'), timeoutMs: APPEND_MS }
    for (;;) {
      const { kind } = await this.#broker.inbox(0).append(frame, options)
      if (kind === 'stored') return frame.length
      if (kind === 'full') throw new Error('the inbox is full')
      await new Promise((resume) => setTimeout(resume, PAUSE_MS))
    }
  }

  #itemOf({ bufferUid, groupKey, size }: Written): PackItem {
    const head = `{"key":"${groupKey}","id":"${markerOf(this.#items++)}","pad":"`
    const itemId = randomUUID()
    return {
      itemId,
      bufferUid,
      groupKey,
      groupToken: groupToken(bufferUid, groupKey),
      messageId: itemId,
      explicit: false,
      credits: 1,
      receivedAt: Date.now(),
      payload: Buffer.from(`${head}${'x'.repeat(Math.max(0, size - head.length - 2))}"}`),
    }
  }
}
