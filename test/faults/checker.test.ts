import { expect } from 'chai'
import { describe, it } from 'mocha'

import { check } from './checker.ts'
import {
  type Delivery,
  type Fault,
  type History,
  newHistory,
  type SentItem,
  type StoredCommit,
} from './history.ts'

/** Times in these histories, ms. */
const SENT = 1_000
const LONG = 60_000

function sentItem(n: number, more: Partial<SentItem> = {}): SentItem {
  const sentAt = SENT + n * 10
  return {
    n,
    bufferId: 'b',
    groupKey: 'g',
    messageId: null,
    payloadHash: `p${n}`,
    credits: 1,
    sentAt,
    answer: { at: sentAt + 5, status: 202, itemId: `id-${n}` },
    ...more,
  }
}

function delivery(version: number, ns: number[], more: Partial<Delivery> = {}): Delivery {
  const at = SENT + 500 + version * 10
  const items = ns.map((n) => ({ n, messageId: `id-${n}`, payloadHash: `p${n}` }))
  return {
    key: `grp:g:v${version}`,
    bufferId: 'b',
    groupKey: 'g',
    bodyHash: `body-${version}`,
    items,
    at,
    status: 200,
    answeredAt: at + 1,
    ...more,
  }
}

/** Two batches of two items each, everything right. */
function sound(): History {
  return {
    ...newHistory(3),
    sent: [1, 2, 3, 4].map((n) => sentItem(n)),
    deliveries: [delivery(10, [1, 2]), delivery(20, [3, 4])],
    credits: { granted: 100, left: 96 },
  }
}

/** An original that is delivered, and its duplicate that was told so. */
function duplicates(): History {
  const history = sound()
  const item = { n: 1, messageId: 'm', payloadHash: 'p1' }
  return {
    ...history,
    sent: [
      sentItem(1, { messageId: 'm' }),
      sentItem(2, {
        messageId: 'm',
        answer: { at: SENT + 25, status: 202, itemId: 'id-1', duplicate: true },
      }),
    ],
    deliveries: [delivery(10, [], { items: [item] })],
    credits: { granted: 100, left: 99 },
  }
}

const kill = (from: number, to = from + 10): Fault => ({ kind: 'kill', from, to })
const commit = (
  seq: number,
  epoch: number,
  boot: string,
  more: Partial<StoredCommit> = {},
): StoredCommit => ({
  shard: 0,
  seq,
  at: SENT,
  boot,
  epoch,
  records: [],
  settled: [],
  ...more,
})
const rulesOf = (history: History) => [...new Set(check(history).map(({ rule }) => rule))]

function broken(change: (history: History) => void, base = sound()): string[] {
  change(base)
  return rulesOf(base)
}

describe('the checker of fault runs', () => {
  it('finds nothing in a sound history', () => {
    expect(rulesOf(sound())).to.deep.equal([])
    expect(rulesOf(duplicates())).to.deep.equal([])
  })

  it('catches an accepted item that went nowhere', () => {
    const rules = broken((history) => history.deliveries.pop())
    expect(rules).to.include('lost')
    expect(broken((history) => Object.assign(history.deliveries[1]!, { status: 500 }))).to.include('lost')
  })

  it('takes the dead letter queue for an arrival', () => {
    const dies = (history: History) => {
      const { key, bufferId, groupKey, bodyHash, items } = history.deliveries[1]!
      history.deliveries[1] = { ...history.deliveries[1]!, status: 400 }
      history.dead.push({ key, bufferId, groupKey, bodyHash, items, createdAt: SENT + LONG })
    }
    expect(broken(dies)).to.deep.equal([])
  })

  it('catches what is left buffered', () => {
    expect(broken((history) => Object.assign(history, { buffered: 1 }))).to.deep.equal(['left-buffered'])
  })

  it('catches what nobody sent, other bytes, another group, a refused request, and an item twice', () => {
    const first = (change: object) => (history: History) =>
      Object.assign(history.deliveries[0]!.items[0]!, change)
    expect(broken(first({ n: 99 }))).to.include('invented')
    expect(broken(first({ payloadHash: 'other' }))).to.include('invented')
    expect(broken(first({ messageId: 'other' }))).to.include('invented')
    expect(broken((history) => Object.assign(history.deliveries[0]!, { groupKey: 'h' }))).to.include(
      'invented',
    )
    const refused = { at: SENT, status: 429 }
    expect(broken((history) => Object.assign(history.sent[0]!, { answer: refused }))).to.include('invented')
    const twice = (history: History) =>
      Object.assign(history.deliveries[0]!, {
        items: history.deliveries[0]!.items.toSpliced(1, 0, ...history.deliveries[0]!.items),
      })
    expect(broken(twice)).to.include('invented')
  })

  it('catches two bodies under one key, and one item under two keys', () => {
    const again = (change: object) => (history: History) => {
      history.faults.push(kill(SENT + 600))
      history.deliveries.splice(1, 0, { ...delivery(10, [1, 2]), at: SENT + 650, ...change })
    }
    expect(broken(again({}))).to.deep.equal([])
    expect(broken(again({ bodyHash: 'other' }))).to.include('two-bodies')
    expect(broken(again({ key: 'grp:g:v11', bodyHash: 'body-11' }))).to.include('two-keys')
  })

  it('catches a second delivery after a 2xx that no fault explains', () => {
    const again = (faults: Fault[], at: number) => (history: History) => {
      history.faults.push(...faults)
      history.deliveries.push({ ...delivery(20, [3, 4]), at })
    }
    expect(broken(again([], SENT + 2_000))).to.deep.equal(['resent'])
    expect(broken(again([kill(SENT + 710)], SENT + 2_000))).to.deep.equal([])
    expect(broken(again([kill(SENT + LONG)], SENT + LONG + 10)), 'the fault came long after').to.include(
      'resent',
    )
    expect(broken(again([kill(SENT + 3_000)], SENT + 2_000)), 'the fault came later').to.include('resent')
    const by = (kind: string) => broken(again([{ ...kill(SENT + 710), kind }], SENT + 2_000))
    for (const kind of ['kill actor-2', 'nats-down actor-1', 'freeze nats', 'destination-reset -'])
      expect(by(kind), kind).to.deep.equal([])
    for (const kind of ['freeze admin-1', 'nats-up ingress-2', 'postgres-reset actor-1', 'postgres-away'])
      expect(by(kind), kind).to.deep.equal(['resent'])
  })

  it('catches a batch that is sent after its dead letter was stored', () => {
    const deadAt = (createdAt: number) => (history: History) => {
      const { key, bufferId, groupKey, bodyHash, items } = history.deliveries[0]!
      history.deliveries[0] = { ...history.deliveries[0]!, status: 400 }
      history.dead.push({ key, bufferId, groupKey, bodyHash, items, createdAt })
    }
    expect(broken(deadAt(SENT + LONG))).to.deep.equal([])
    expect(broken(deadAt(SENT))).to.include('sent-after-dead')
  })

  it('catches a batch that is dead although its destination took it', () => {
    const deadAt = (status: number, faults: Fault[]) => (history: History) => {
      const { key, bufferId, groupKey, bodyHash, items, at } = history.deliveries[0]!
      history.deliveries[0] = { ...history.deliveries[0]!, status }
      history.faults.push(...faults)
      history.dead.push({ key, bufferId, groupKey, bodyHash, items, createdAt: at + 100 })
    }
    expect(broken(deadAt(200, []))).to.deep.equal(['dead-after-ack'])
    expect(broken(deadAt(400, []))).to.deep.equal([])
    // Its answer may not have come back.
    expect(broken(deadAt(200, [kill(SENT + 500, SENT + 600)]))).to.deep.equal([])
  })

  it('catches more attempts than faults explain', () => {
    const fails = (times: number, faults: Fault[]) => (history: History) => {
      history.faults.push(...faults)
      const failed = Array.from({ length: times }, (_, i) =>
        delivery(20, [3, 4], { status: 500, at: SENT + 600 + i }),
      )
      history.deliveries.splice(1, 0, ...failed)
    }
    expect(broken(fails(2, []))).to.deep.equal([])
    expect(broken(fails(3, []))).to.deep.equal(['attempts'])
    expect(broken(fails(3, [kill(SENT + 601)]))).to.deep.equal([])
  })

  it('catches batches and items out of order', () => {
    const late = (history: History) => history.deliveries.reverse()
    expect(broken(late)).to.include('batch-order')
    const swapped = (history: History) => {
      const [first, second] = history.deliveries as [Delivery, Delivery]
      history.deliveries.splice(0, 2, { ...first, items: second.items }, { ...second, items: first.items })
    }
    expect(broken(swapped)).to.include('item-order')
    const unknown = (history: History) => {
      swapped(history)
      for (const item of history.sent.slice(2)) item.answer = null
    }
    expect(broken(unknown), 'unanswered requests have no known place').not.to.include('item-order')
  })

  it('lets a batch come late, and once more, that was held back while others went on; never at first', () => {
    const held = { ...kill(SENT + 600, SENT + 5_000), heldUntil: SENT + 2_000 }
    const again = (fault: Fault, at: number) => (history: History) => {
      history.faults.push(fault)
      history.deliveries.push({ ...delivery(10, [1, 2]), at })
    }
    expect(broken(again(held, SENT + 2_100))).to.deep.equal([])
    expect(broken(again(kill(SENT + 600, SENT + 5_000), SENT + 2_100)), 'it holds nothing').to.include(
      'batch-order',
    )
    expect(broken(again(held, SENT + 4_100)), 'long after its release').to.include('batch-order')
    const afterwards = { ...held, from: SENT + 800 }
    expect(broken(again(afterwards, SENT + 2_100)), 'overtaken before it').to.include('batch-order')
    const first = (history: History) => {
      history.faults.push(held)
      history.deliveries.reverse()
    }
    expect(broken(first)).to.deep.equal(['batch-order'])
  })

  it('lets an attempt come behind its dead letter that was held back meanwhile', () => {
    const held = { ...kill(SENT + 600, SENT + 5_000), heldUntil: SENT + 2_000 }
    const afterDeath = (fault: Fault) => (history: History) => {
      const { key, bufferId, groupKey, bodyHash, items } = history.deliveries[1]!
      history.faults.push(fault)
      history.deliveries[1] = { ...history.deliveries[1]!, status: 400 }
      history.dead.push({ key, bufferId, groupKey, bodyHash, items, createdAt: SENT + 1_900 })
      history.deliveries.push({ ...delivery(20, [3, 4], { status: 400 }), at: SENT + 2_100 })
    }
    expect(broken(afterDeath(held))).to.deep.equal([])
    expect(broken(afterDeath(kill(SENT + 600, SENT + 5_000)))).to.deep.equal(['sent-after-dead'])
    expect(broken(afterDeath({ ...held, from: SENT + 1_950 })), 'died before').to.deep.equal([
      'sent-after-dead',
    ])
  })

  it('takes a batch for over when the record of it is stored', () => {
    const duplicateAfter =
      (...commits: StoredCommit[]) =>
      (history: History) => {
        const { key, bufferId, groupKey, bodyHash, items } = history.deliveries[0]!
        history.commits = commits
        history.deliveries[0] = { ...history.deliveries[0]!, status: 400 }
        history.dead.push({ key, bufferId, groupKey, bodyHash, items, createdAt: SENT + 600 })
        Object.assign(history.sent[1]!, { sentAt: LONG, answer: { ...history.sent[1]!.answer, at: LONG } })
      }
    const [late, soon] = [LONG - 100, SENT + 600].map((at) =>
      commit(7, 5, 'a', { at, settled: ['grp:g:v10'] }),
    )
    const first = commit(6, 5, 'a', { at: SENT })
    expect(broken(duplicateAfter(first, late!), duplicates())).to.deep.equal([])
    expect(broken(duplicateAfter(first, soon!), duplicates())).to.deep.equal(['duplicate-of-what-is-over'])
    expect(
      broken(duplicateAfter(first, soon!, late!), duplicates()),
      'the first record counts',
    ).to.not.deep.equal([])
    expect(broken(duplicateAfter(first), duplicates()), 'no record of it').to.deep.equal([
      'duplicate-of-what-is-over',
    ])
    const purged = commit(8, 5, 'a', { at: LONG - 100 })
    expect(broken(duplicateAfter(purged), duplicates()), 'it was purged').to.deep.equal([])
  })

  it('catches a duplicate that is sent, or whose original is lost', () => {
    const sendsBoth = (history: History) =>
      history.deliveries.push(delivery(20, [], { items: [{ n: 2, messageId: 'm', payloadHash: 'p2' }] }))
    expect(broken(sendsBoth, duplicates())).to.include('duplicate-sent')
    expect(broken((history) => history.deliveries.pop(), duplicates())).to.include('original-lost')
  })

  it('catches a drop long after the original was delivered', () => {
    const later = (faults: Fault[]) => (history: History) => {
      history.faults.push(...faults)
      const answer = { at: LONG, status: 202, itemId: 'id-1', duplicate: true }
      Object.assign(history.sent[1]!, { sentAt: LONG, answer })
    }
    expect(broken(later([]), duplicates())).to.deep.equal(['duplicate-of-what-is-over'])
    expect(broken(later([kill(SENT + 600)]), duplicates()), 'but for long').to.deep.equal([
      'duplicate-of-what-is-over',
    ])
    expect(
      broken(later([kill(SENT + 600, LONG - 100)]), duplicates()),
      'the record was cut off',
    ).to.deep.equal([])
  })

  it('catches a duplicate of an item that nobody sent', () => {
    const named = (itemId: string) => (history: History) => {
      history.sent[1]!.answer = { ...history.sent[1]!.answer!, itemId }
    }
    expect(broken(named('id-1'), duplicates())).to.deep.equal([])
    expect(broken(named('id-9'), duplicates())).to.deep.equal(['duplicate-of-nothing'])
  })

  it('catches duplicates that were buffered together and both sent', () => {
    const bothLater = (history: History) => {
      history.sent[1]!.answer = { at: SENT + 25, status: 202, itemId: 'id-2' }
      const duplicate = { n: 2, messageId: 'm', payloadHash: 'p2' }
      Object.assign(history.deliveries[0]!, { at: LONG })
      history.deliveries.push(delivery(20, [], { items: [duplicate], at: LONG + 10 }))
    }
    expect(broken(bothLater, duplicates())).to.include('duplicate-missed')
    const together = (history: History) => {
      history.sent[1]!.answer = null
      const items = [1, 2].map((n) => ({ n, messageId: 'm', payloadHash: `p${n}` }))
      history.deliveries.splice(0, 1, delivery(10, [], { items }))
    }
    expect(broken(together, duplicates())).to.deep.equal(['duplicate-missed'])
  })

  it('catches a wrong charge, within what was in flight at a fault', () => {
    const left = (credits: number, faults: Fault[]) => (history: History) => {
      history.faults.push(...faults)
      history.credits = { granted: 100, left: credits }
    }
    expect(broken(left(95, []))).to.deep.equal(['overcharged'])
    expect(broken(left(97, []))).to.deep.equal(['undercharged'])
    expect(broken(left(95, [kill(SENT + 42)]))).to.deep.equal(['overcharged'])
    expect(broken(left(97, [kill(SENT + 42)]))).to.deep.equal([])
    const by = (kind: string) => broken(left(97, [{ ...kill(SENT + 42), kind }]))
    for (const kind of ['kill ingress-1', 'postgres-away', 'kill nats'])
      expect(by(kind), kind).to.deep.equal([])
    for (const kind of ['kill actor-1', 'freeze admin-1', 'destination-latency -'])
      expect(by(kind), kind).to.deep.equal(['undercharged'])
    const unsure = (history: History) => {
      left(97, [])(history)
      history.sent[3]!.answer = { at: SENT + 45, status: 503 }
    }
    expect(broken(unsure)).to.deep.equal([])
  })

  it('catches a commit of an owner after the claim of another', () => {
    const commits = [
      commit(5, 0, 'a', { records: ['epoch'] }),
      commit(6, 5, 'a', { records: ['seal'] }),
      commit(7, 0, 'b', { records: ['epoch'] }),
    ]
    const write =
      (...more: typeof commits) =>
      (history: History) => {
        history.commits = [...commits, ...more]
      }
    expect(broken(write(commit(8, 7, 'b', { records: ['seal'] })))).to.deep.equal([])
    expect(broken(write(commit(8, 5, 'a', { records: ['done'] })))).to.deep.equal(['stale-owner'])
  })
})
