/** Whether the highest inbox message that an owner saw is still what it was. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodePack } from '../../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../../internal/domain/pack-id.ts'
import type { Log } from '../../../internal/shard/broker.ts'
import { checkHighWater } from '../../../internal/shard/claim/takeover.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'

const SEQ = 20
const SEEN = Buffer.alloc(PACK_ID_BYTES, 1)
const MARK = { seq: SEQ, packId: SEEN.toString('base64url') }

/** An inbox from `firstSeq` to `lastSeq`; `id`: of the pack at `SEQ`, undefined: nothing stands there. */
function inboxOf(firstSeq: number, lastSeq: number, id: Buffer | undefined): Partial<Log> {
  const state = { firstSeq, lastSeq, messages: lastSeq - firstSeq + 1, bytes: 0, maxBytes: 0 }
  const message = id && { seq: SEQ, at: 0, data: encodePack(id, null, []), msgId: null }
  return { state: async () => state, get: async () => message }
}

const verdictOn = (inbox: Partial<Log>, mark: typeof MARK | null = MARK) =>
  checkHighWater(inbox as Log, 0, mark).then(
    () => 'there',
    (error: Error) => (error instanceof LostTailError ? 'lost' : String(error)),
  )

describe('the high-water mark of an inbox', () => {
  it('holds while its pack is there', async () => {
    expect(await verdictOn(inboxOf(1, SEQ, SEEN))).to.equal('there')
    expect(await verdictOn(inboxOf(SEQ, SEQ + 5, SEEN))).to.equal('there')
  })

  it('holds when its pack was purged, and when there is none', async () => {
    expect(await verdictOn(inboxOf(SEQ + 1, SEQ, undefined))).to.equal('there')
    expect(await verdictOn(inboxOf(SEQ + 3, SEQ + 9, undefined))).to.equal('there')
    expect(await verdictOn(inboxOf(1, 0, undefined), null)).to.equal('there')
  })

  it('holds when its pack is purged while it is looked for', async () => {
    const before = inboxOf(1, SEQ + 5, undefined)
    const after = inboxOf(SEQ + 1, SEQ + 5, undefined)
    const states = [before, after].map(({ state }) => state!)
    expect(await verdictOn({ ...before, state: () => states.shift()!() })).to.equal('there')
  })

  it('fails when the inbox ends below it', async () => {
    expect(await verdictOn(inboxOf(1, SEQ - 1, undefined))).to.equal('lost')
  })

  it('fails when another pack, or none, stands in its place', async () => {
    expect(await verdictOn(inboxOf(1, SEQ + 5, Buffer.alloc(PACK_ID_BYTES, 2)))).to.equal('lost')
    expect(await verdictOn(inboxOf(1, SEQ + 5, undefined))).to.equal('lost')
  })
})
