import { expect } from 'chai'
import { describe, it } from 'mocha'

import { readHeaders } from './delivery-headers.ts'
import type { Delivery, History, Shape, StoredCommit } from './history.ts'
import {
  batchItem,
  broken,
  changed,
  claim,
  commit,
  delivery,
  kill,
  otherDelivery,
  SENT,
  sentItem,
  TERMS,
} from './sample-history.ts'

const KNOWN = SENT + 30_000
/** Told at that time, and surely known everywhere at KNOWN. */
const TOLD = { askedAt: SENT, answeredAt: SENT + 1 }

/** The second batch comes at `at`, after the buffer was told so. */
function told(at: number, ...changes: ReturnType<typeof changed>[]) {
  return (history: History) => {
    history.changes.push(...changes)
    Object.assign(history.deliveries[1]!, { at, answeredAt: at + 1 })
  }
}

describe('the checker of the limits of a batch', () => {
  const limits = (more: object) => (history: History) => {
    history.changes[0] = changed(more)
  }

  it('catches more items than maxItems', () => {
    expect(broken(limits({ maxItems: 2 }))).to.deep.equal([])
    expect(broken(limits({ maxItems: 1 }))).to.deep.equal(['too-many-items'])
    const later = (history: History) => {
      history.changes.push(changed({ maxItems: 1 }, TOLD))
    }
    expect(broken(later), 'sealed before it was told so').to.deep.equal([])
  })

  it('catches more bytes than maxBytes, unless one item alone has more', () => {
    expect(broken(limits({ maxBytes: 200 }))).to.deep.equal([])
    expect(broken(limits({ maxBytes: 199 }))).to.deep.equal(['too-many-bytes'])
    const alone = (history: History) => {
      limits({ maxBytes: 199 })(history)
      history.sent.splice(1, 3)
      history.deliveries.splice(0, 2, delivery(10, [batchItem(1, { payloadBytes: 5_000 })]))
      history.credits = null
    }
    expect(broken(alone)).to.deep.equal([])
  })
})

describe('the checker of disabled buffers', () => {
  const disabled = changed({ enabled: false }, TOLD)

  it('catches an attempt of a buffer that is disabled', () => {
    expect(broken(told(KNOWN))).to.deep.equal([])
    expect(broken(told(KNOWN, disabled))).to.deep.equal(['sent-while-disabled'])
    expect(broken(told(SENT + 2_000, disabled)), 'not every owner knows it yet').to.deep.equal([])
  })

  it('lets it go on as soon as it may be enabled again', () => {
    const enabled = (answeredAt: number | null) => changed({}, { askedAt: KNOWN - 10, answeredAt })
    expect(broken(told(KNOWN, disabled, enabled(KNOWN)))).to.deep.equal([])
    expect(broken(told(KNOWN, disabled, enabled(null)))).to.deep.equal([])
    expect(broken(told(KNOWN - 20, disabled, enabled(KNOWN)))).to.deep.equal(['sent-while-disabled'])
    const unanswered = { ...disabled, answeredAt: null }
    expect(broken(told(KNOWN, unanswered)), 'nobody said that it is').to.deep.equal([])
  })

  it('lets an owner of several send until it signed with a younger secret, and not behind that', () => {
    const younger = changed(
      { signing: { header: 'x-svc-signature', secret: 'younger' } },
      { bufferId: 'other', askedAt: SENT + 100, answeredAt: SENT + 101 },
    )
    const signed =
      (secret: string, at: number, claims: StoredCommit[] = []) =>
      (history: History) => {
        told(KNOWN, disabled, younger)(history)
        history.commits = [claim(1, 'a', SENT), ...claims]
        history.claims = [{ shard: 0, epoch: 1, node: 'actor-1' }]
        history.shape = 'cluster'
        history.sent.push(sentItem(5, { bufferId: 'other', groupKey: 'h' }))
        const signature = { header: 'x-svc-signature', secret }
        history.deliveries.push(otherDelivery(12, [5], { bufferId: 'other', signature, at }))
        history.credits = null
      }
    expect(broken(signed('younger', SENT + 20_000))).to.deep.equal(['sent-while-disabled'])
    expect(broken(signed('younger', KNOWN - 1_000)), 'perhaps on the way').to.deep.equal([])
    const takeOver = [claim(30, 'b', SENT + 25_000)]
    expect(broken(signed('younger', SENT + 20_000, takeOver)), 'another owner').to.deep.equal([])
    const older = (history: History) => {
      signed('s', SENT + 20_000)(history)
      history.changes.splice(2, 1, changed({}, { bufferId: 'other' }))
    }
    expect(broken(older)).to.deep.equal([])
  })

  it('lets an owner send that cannot hear of it, until it can', () => {
    const hidden = (kind: string, to: number) => (history: History) => {
      told(KNOWN, disabled)(history)
      history.faults.push({ ...kill(SENT + 100, to), kind })
    }
    for (const kind of ['postgres-blackhole actor-1', 'postgres-away', 'freeze actor-1'])
      expect(broken(hidden(kind, KNOWN - 1_000)), kind).to.deep.equal([])
    expect(broken(hidden('postgres-away', KNOWN - 10_000)), 'long ago').to.deep.equal(['sent-while-disabled'])
    for (const kind of ['postgres-away ingress-1', 'kill actor-1', 'nats-up actor-1'])
      expect(broken(hidden(kind, KNOWN - 1_000)), kind).to.deep.equal(['sent-while-disabled'])
  })
})

describe('the checker of headers', () => {
  const wrong = (change: Partial<Delivery>) => (history: History) =>
    Object.assign(history.deliveries[0]!, change)

  it('catches a signature that is missing, wrong, in another header, or not asked for', () => {
    const header = 'x-svc-signature'
    for (const signature of [null, { header, secret: null }, { header: 'x-other', secret: 's' }])
      expect(broken(wrong({ signature })), JSON.stringify(signature)).to.deep.equal(['headers'])
    const unsigned = (history: History) => {
      history.changes[0] = changed({ signing: null })
    }
    expect(broken(unsigned)).to.deep.equal(['headers'])
  })

  it('catches a secret that is over', () => {
    const rotated = (answeredAt: number | null) =>
      changed({ signing: { header: 'x-svc-signature', secret: 'new' } }, { askedAt: SENT, answeredAt })
    expect(broken(told(KNOWN, rotated(SENT + 1)))).to.deep.equal(['headers'])
    expect(broken(told(SENT + 2_000, rotated(SENT + 1))), 'not every owner knows it yet').to.deep.equal([])
    expect(broken(told(KNOWN, rotated(null))), 'nobody said that it is').to.deep.equal([])
  })

  const rotatedAt = (askedAt: number) =>
    changed({ signing: { header: 'x-svc-signature', secret: 'new' } }, { askedAt, answeredAt: askedAt + 1 })
  /** The secret of before, so long after the change, ms. */
  const oldAfter = (ms: number, shape: Shape, change = (_: History): void => {}) =>
    broken((history) => {
      history.shape = shape
      told(KNOWN, rotatedAt(KNOWN - ms))(history)
      change(history)
    })

  it('catches a secret that is over sooner where fewer processes have to hear of it', () => {
    const bounds: [Shape, number][] = [
      ['one process', 3_000],
      ['several processes', 10_000],
      ['cluster', 30_000],
    ]
    for (const [shape, ms] of bounds) {
      expect(oldAfter(ms, shape), shape).to.deep.equal([])
      expect(oldAfter(ms + 10, shape), shape).to.deep.equal(['headers'])
    }
  })

  it('catches it at once where all processes began behind the change', () => {
    const killed = (msAfter: number) => (history: History) => {
      history.faults.push(kill(KNOWN - 9_000 + msAfter))
    }
    expect(oldAfter(9_000, 'several processes', killed(-100)), 'the change came later').to.deep.equal([])
    expect(oldAfter(9_000, 'several processes', killed(100))).to.deep.equal(['headers'])
    expect(oldAfter(9_000, 'several processes', killed(8_000)), 'perhaps on the way').to.deep.equal([])
  })

  describe('of an attempt that arrives late', () => {
    /** Its sender closed the connection so long after the arrival, ms; the batch was sealed long ago. */
    const closed = (afterMs: number | null) => (history: History) => {
      history.commits = [commit(2), commit(20, { records: ['seal'] })]
      const last = history.deliveries[1]!
      history.deliveries[1] = { ...last, closedAt: afterMs === null ? null : last.at + afterMs }
    }
    const killed = (msBefore: number, afterMs: number | null) => (history: History) => {
      closed(afterMs)(history)
      history.commits[1] = commit(20, { at: KNOWN - 5_000, records: ['seal'] })
      history.faults.push(kill(KNOWN - msBefore))
    }

    it('takes the secret of its own time, when it was given up', () => {
      expect(oldAfter(12_000, 'several processes', closed(100))).to.deep.equal([])
      for (const late of [null, 4_000])
        expect(oldAfter(12_000, 'several processes', closed(late)), `${late}: heard`).to.deep.equal([
          'headers',
        ])
      const slow = (history: History) => {
        closed(8_000)(history)
        history.deliveries[1] = { ...history.deliveries[1]!, answeredAt: KNOWN + 9_000 }
      }
      expect(oldAfter(12_000, 'several processes', slow), 'it came in time').to.deep.equal(['headers'])
    })

    it('takes it when its sender was killed on its way', () => {
      expect(oldAfter(12_000, 'several processes', killed(1_000, 100))).to.deep.equal([])
      expect(oldAfter(12_000, 'several processes', killed(1_000, null)), 'heard').to.deep.equal(['headers'])
      const again = (history: History) => {
        killed(15_000, 100)(history)
        history.faults.push(kill(KNOWN + 50))
      }
      expect(oldAfter(12_000, 'several processes', again), 'killed behind it').to.deep.equal(['headers'])
    })

    it('takes none that was over before it can have been sent', () => {
      const later = (history: History) => {
        closed(100)(history)
        Object.assign(history.deliveries[1]!, { at: KNOWN + 32_000, answeredAt: KNOWN + 32_001 })
        closed(100)(history)
      }
      expect(oldAfter(12_000, 'several processes', later)).to.deep.equal(['headers'])
    })
  })

  it('catches a key in another header, or in none', () => {
    for (const keyHeader of [null, 'x-other'])
      expect(broken(wrong({ keyHeader })), String(keyHeader)).to.deep.equal(['headers'])
    expect(broken(wrong({ key: '' }))).to.include('untrue')
  })
})

describe('the headers of a delivery', () => {
  const terms = [
    TERMS,
    { ...TERMS, idempotencyHeader: 'x-batch', signing: { header: 'x-signed', secret: 't' } },
  ]
  const body = Buffer.from('{"a":1}')
  /** HMAC-SHA256 of the body under `s`, by openssl. */
  const signed = '37beaf650f70b40ec9706929c2e9d835cbd63729988f48781e6383a147215f07'

  it('are looked for under every name that the buffer ever had', () => {
    const headers = { 'x-batch': 'key', 'x-signed': 'nonsense' }
    expect(readHeaders({ headers, body }, terms)).to.deep.equal({
      key: 'key',
      keyHeader: 'x-batch',
      signature: { header: 'x-signed', secret: null },
    })
    expect(readHeaders({ headers: {}, body }, terms)).to.deep.equal({
      key: '',
      keyHeader: null,
      signature: null,
    })
  })

  it('name the secret with which the signature is right over exactly this body', () => {
    const read = (bytes: Buffer) =>
      readHeaders({ headers: { 'x-svc-signature': signed }, body: bytes }, terms).signature?.secret
    expect(read(body)).to.equal('s')
    expect(read(Buffer.from('{"a":1 }'))).to.equal(null)
  })
})
