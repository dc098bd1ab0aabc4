import { expect } from 'chai'
import { describe, it } from 'mocha'

import { readHeaders } from './delivery-headers.ts'
import type { Delivery, History, StoredCommit } from './history.ts'
import {
  batchItem,
  broken,
  changed,
  claim,
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
