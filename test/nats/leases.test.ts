import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, before, beforeEach, describe, it } from 'mocha'
import { headers, type JetStreamManager, nanos, RetentionPolicy, StorageType } from 'nats'
import { encodeLease } from '../../internal/nats/leases/lease-value.ts'
import { eventually } from '../support/eventually.ts'
import { type NatsAccess, natsAccount, natsConnection } from '../support/servers.ts'
import {
  addBucket,
  boots,
  LASTING,
  leaseOf,
  type Member,
  members,
  problemsOf,
  STREAM,
  TTL_MS,
} from './lease-members.ts'

/** Nobody is gone for so long after a watch began. */
const unsureMs = TTL_MS * 1.2

describe('leases', () => {
  const { join, leave } = members()
  let account: NatsAccess
  let manager: JetStreamManager

  before(async () => {
    account = await natsAccount()
    manager = await (await natsConnection(account)).jetstreamManager()
  })
  beforeEach(async () => {
    for await (const name of manager.streams.names()) await manager.streams.delete(name)
  })
  afterEach(leave)

  const publish = async (boot: string, data: Uint8Array | string, fields: Record<string, string> = {}) => {
    const connection = await natsConnection(account)
    const given = headers()
    for (const [name, value] of Object.entries(fields)) given.set(name, value)
    await connection.request(`$KV.penstock-leases.${boot}`, data, { headers: given, timeout: 2_000 })
    await connection.close()
  }
  const lastWriteOf = async (boot: string) =>
    (await manager.streams.getMessage(STREAM, { last_by_subj: `$KV.penstock-leases.${boot}` })).seq

  it('stand in a bucket in memory that forgets them after the TTL', async () => {
    await join(account.url)
    const { config } = await manager.streams.info(STREAM)
    expect(config).to.deep.include({
      subjects: ['$KV.penstock-leases.>'],
      retention: RetentionPolicy.Limits,
      storage: StorageType.Memory,
      max_msgs_per_subject: 1,
      max_age: nanos(TTL_MS),
      num_replicas: 1,
      allow_direct: false,
    })
  })

  it('show two members each other, in the order of boots, each as it is', async () => {
    const before = Date.now()
    const one = await join(account.url)
    expect(one.leases.leases()).to.have.length(1)
    const role = { boot: randomUUID(), role: 'ingress', node: 'pod-7', version: '0.2.0' } as const
    const other = await join(account.url, { node: { ...role, installation: { shards: 4, serializer: 2 } } })
    expect(boots(other), 'complete from the first').to.deep.equal([one.boot, other.boot].sort())
    await eventually(() => boots(one).length === 2)
    expect(one.leases.leases()).to.deep.equal(other.leases.leases())
    const seen = one.leases.leases().find(({ boot }) => boot === other.boot)
    expect(seen?.since).to.be.within(before, Date.now())
    expect(seen).to.deep.equal({
      ...role,
      shards: [],
      accepting: false,
      webhooks: 'none',
      since: seen?.since,
      installation: { shards: 4, serializer: 2 },
    })
    expect(one.leases.ttlMs).to.equal(TTL_MS)
  })

  it('show five that join at once each other, although all of them make the bucket', async () => {
    const five = await Promise.all(Array.from({ length: 5 }, () => join(account.url, LASTING)))
    const all = five.map(({ boot }) => boot).sort()
    for (const member of five) {
      await eventually(() => expect(boots(member)).to.deep.equal(all))
      expect(member.leases.held).to.equal(true)
      expect(member.problems).to.deep.equal([])
    }
    expect((await manager.streams.info(STREAM)).state.num_subjects).to.equal(5)
  })

  it('are renewed: they stand for longer than the TTL, and renewals are no changes', async () => {
    const [one, other] = [await join(account.url), await join(account.url)]
    await eventually(() => boots(one).length === 2)
    const first = await lastWriteOf(other.boot)
    const boot = randomUUID()
    await eventually(() => one.leases.isGone(boot))
    await eventually(() => other.leases.isGone(boot))
    const [changes, seq] = [one.changes(), await lastWriteOf(other.boot)]
    expect(seq).to.be.above(first)
    // Each writes five times within a TTL.
    await eventually(async () => (await lastWriteOf(other.boot)) > seq + 10)
    expect(one.changes()).to.equal(changes)
    for (const member of [one, other]) {
      expect(boots(member)).to.have.length(2)
      expect(member.held).to.have.length(1)
      expect([...problemsOf(member), ...member.fatal]).to.deep.equal([])
    }
  })

  it('say what is announced: at once, coalesced, the last one counts', async () => {
    const [one, other] = [await join(account.url, LASTING), await join(account.url, LASTING)]
    await eventually(() => boots(one).length === 2)
    const said = () => one.leases.leases().find(({ boot }) => boot === other.boot)
    const before = await lastWriteOf(other.boot)
    for (let shards = 0; shards < 200; shards++) other.leases.announce({ shards: [shards + 10, 2, 2] })
    await eventually(() => expect(said()?.shards).to.deep.equal([2, 209]))
    expect((await lastWriteOf(other.boot)) - before, 'one in flight, one after it, renewals').to.be.below(20)
    expect(said()?.accepting).to.equal(true)
    other.leases.announce({ accepting: false })
    await eventually(() => expect(said()).to.deep.include({ shards: [2, 209], accepting: false }))
    other.leases.announce({ webhooks: 'ending' })
    await eventually(() => expect(said()).to.deep.include({ accepting: false, webhooks: 'ending' }))
    const own = () => other.leases.leases().find(({ boot }) => boot === other.boot)
    // Over connections of their own: either may hear of it first.
    await eventually(() => expect(own()).to.deep.equal(said()))
  })

  it('are gone at once when they are released', async () => {
    const [one, other] = [await join(account.url, LASTING), await join(account.url, LASTING)]
    await eventually(() => boots(one).length === 2)
    let told = false
    one.leases.onChange(() => {
      told ||= one.leases.isGone(other.boot)
    })
    const released = performance.now()
    await other.leases.close()
    await eventually(() => told)
    expect(performance.now() - released, 'not by its expiry').to.be.below(LASTING.ttlMs)
    expect(boots(one)).to.deep.equal([one.boot])
    expect(other.leases.held).to.equal(false)
    expect(other.leases.isGone(other.boot)).to.equal(true)
    expect(other.held.map(({ held }) => held)).to.deep.equal([true, false])
    expect(problemsOf(other)).to.deep.equal([])
    // What it announces now is said to nobody.
    other.leases.announce({ shards: [1] })
    await other.leases.close()
    expect(boots(one)).to.deep.equal([one.boot])
  })

  it('of a killed member are gone after the TTL and not before, and it knows before all others', async () => {
    const three: Member[] = await Promise.all(Array.from({ length: 3 }, () => join(account.url)))
    const [one, other, killed] = three as [Member, Member, Member]
    await eventually(() => boots(one).length === 3 && boots(other).length === 3)
    const unsure = randomUUID()
    await eventually(() => one.leases.isGone(unsure) && other.leases.isGone(unsure))
    const goneAt: number[] = []
    for (const { leases } of [one, other]) {
      const unsubscribe = leases.onChange(() => {
        if (!leases.isGone(killed.boot)) return
        goneAt.push(performance.now())
        unsubscribe()
      })
    }
    let renewedAt = 0
    const ears = await natsConnection(account)
    ears.subscribe(`$KV.penstock-leases.${killed.boot}`, {
      callback: () => {
        renewedAt = performance.now()
      },
    })
    await eventually(() => renewedAt > 0)
    await killed.kill()
    await eventually(() => goneAt.length === 2)
    const lost = killed.held.at(-1)
    expect(lost?.held).to.equal(false)
    for (const gone of goneAt) {
      expect(gone).to.be.above(lost?.at ?? Number.POSITIVE_INFINITY)
      expect(gone - renewedAt).to.be.above(TTL_MS)
    }
    expect(boots(one)).to.deep.equal([one.boot, other.boot].sort())
    expect(one.held).to.have.length(1)
  })

  it('leave nobody for gone before TTL + 1 s, however long the bucket has been there', async () => {
    const one = await join(account.url)
    const nobody = randomUUID()
    await eventually(() => one.leases.isGone(nobody))
    const joining = performance.now()
    const late = await join(account.url)
    let told = 0
    late.leases.onChange(() => {
      if (told === 0 && late.leases.isGone(nobody)) told = performance.now()
    })
    expect(late.leases.isGone(nobody)).to.equal(false)
    await eventually(() => told > 0)
    expect(told - joining).to.be.above(unsureMs)
    expect(late.leases.isGone(one.boot)).to.equal(false)
  })

  it('of newer versions are read, broken ones stand without shards and are reported once', async () => {
    const one = await join(account.url)
    const [newer, broken, odd] = [randomUUID(), randomUUID(), randomUUID()].sort() as [string, string, string]
    const value = JSON.parse(
      Buffer.from(encodeLease(leaseOf(newer, [5]), { writer: 'w', beat: 1 })).toString(),
    )
    const write = async () => {
      await publish(newer, JSON.stringify({ ...value, v: 9, zone: { name: 'b' } }))
      await publish(broken, 'rubbish')
      await publish(odd, JSON.stringify({ ...value, boot: odd, role: 'king' }))
    }
    await write()
    await write()
    await eventually(() => boots(one).length === 4)
    const seen = one.leases.leases().filter(({ boot }) => boot !== one.boot)
    expect(seen[0]).to.deep.equal(leaseOf(newer, [5]))
    for (const lease of seen.slice(1)) expect(lease).to.deep.include({ role: 'admin', shards: [] })
    expect(problemsOf(one).sort()).to.deep.equal(
      [`lease ${broken} cannot be read: not JSON`, `lease ${odd} cannot be read: role is "king"`].sort(),
    )
    await eventually(() => [newer, broken, odd].every((boot) => one.leases.isGone(boot)))
    expect(boots(one)).to.deep.equal([one.boot])
  })

  it('written by another process too are given up, in one line', async () => {
    const [one, other] = [await join(account.url), await join(account.url)]
    await publish(one.boot, encodeLease(leaseOf(one.boot), { writer: 'copy', beat: 1 }))
    await eventually(() => one.fatal.length > 0)
    expect(one.fatal.map(({ message }) => message)).to.deep.equal([
      `lease ${one.boot} of node is written by another process too`,
    ])
    expect(one.leases.held).to.equal(false)
    expect(one.held.map(({ held }) => held)).to.deep.equal([true, false])
    // It writes no more: what stands is the other one's, until it expires.
    await eventually(() => other.leases.isGone(one.boot))
    expect(other.fatal).to.deep.equal([])
  })

  it('refuse the second of two processes with one boot, and leave the first alone', async () => {
    const one = await join(account.url)
    const node = { boot: one.boot, role: 'actor', node: 'copy', version: '0.1.0' } as const
    const fatal: Error[] = []
    const refusal = await join(account.url, {
      node: { ...node, installation: { shards: 8, serializer: 1 } },
      onFatal: (error) => fatal.push(error),
    }).then(
      () => 'joined',
      (error: Error) => error.message,
    )
    expect(refusal).to.equal(
      `the own lease does not stand: lease ${one.boot} of copy is written by another process too`,
    )
    expect(fatal).to.deep.equal([])
    expect(one.leases.held, 'its lease was not touched').to.equal(true)
    expect(one.fatal).to.deep.equal([])
  })

  it('deleted by somebody else are given up', async () => {
    const one = await join(account.url)
    await publish(one.boot, '', { 'KV-Operation': 'DEL' })
    await eventually(() => one.fatal.length > 0)
    expect(one.fatal[0]?.message).to.equal(`lease ${one.boot} of node was deleted by somebody else`)
    expect(one.leases.held).to.equal(false)
  })

  it('come back when the bucket is purged, and when it is deleted', async () => {
    const [one, other] = [await join(account.url), await join(account.url)]
    await eventually(() => boots(one).length === 2)
    const nobody = randomUUID()
    await eventually(() => one.leases.isGone(nobody))
    const last = await lastWriteOf(one.boot)
    await manager.streams.purge(STREAM)
    await eventually(
      async () => (await lastWriteOf(one.boot)) > last && (await lastWriteOf(other.boot)) > last,
    )
    const deleted = performance.now()
    await manager.streams.delete(STREAM)
    const gone = new Set<string>()
    one.leases.onChange(() => {
      if (performance.now() - deleted < unsureMs && one.leases.isGone(other.boot)) gone.add(other.boot)
    })
    await eventually(async () => (await manager.streams.info(STREAM)).state.num_subjects === 2)
    await eventually(() => one.problems.some((text) => text.includes('the watch of the leases begins anew')))
    expect(one.leases.isGone(nobody)).to.equal(false)
    await eventually(() => one.leases.isGone(nobody))
    expect(performance.now() - deleted).to.be.above(unsureMs)
    expect([...gone]).to.deep.equal([])
    expect(boots(one)).to.deep.equal([one.boot, other.boot].sort())
    for (const { held, fatal } of [one, other]) expect([held.length, fatal.length]).to.deep.equal([1, 0])
  })

  it('work in a bucket that somebody made otherwise, and say so', async () => {
    await addBucket(manager, { max_age: nanos(60_000), max_msgs_per_subject: 5 })
    const [one, other] = [await join(account.url), await join(account.url)]
    await eventually(() => boots(one).length === 2)
    expect(problemsOf(one)).to.deep.equal([
      `the bucket of the leases is not as it should be: stream ${STREAM}: max_age is 60000000000, must be ${nanos(TTL_MS)}; max_msgs_per_subject is 5, must be 1`,
    ])
    await other.kill()
    await eventually(() => one.leases.isGone(other.boot))
  })

  it('do not stand without a broker that stores them: joining is given up', async () => {
    await addBucket(manager, { subjects: ['elsewhere'] })
    const refusal = await join(account.url, { ...LASTING, joinMs: 3_000 }).then(
      () => 'joined',
      (error: Error) => error.message,
    )
    expect(refusal).to.contain('the own lease does not stand: ').and.contain('subjects is ["elsewhere"]')
  })

  it('survive a listener that throws', async () => {
    const one = await join(account.url, LASTING)
    one.leases.onChange(() => {
      throw new Error('not today')
    })
    const other = await join(account.url, LASTING)
    await eventually(() => boots(one).length === 2)
    expect(one.problems).to.include('a change of the leases was not taken in: not today')
    await other.leave()
    await eventually(() => boots(one).length === 1)
  })
})
