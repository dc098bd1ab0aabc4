/** Lookups on a real name server (docs/architecture/protocol.md, "Lookups"). */
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { LookupError, LookupWithheldError } from '../../../internal/delivery/dns/failure.ts'
import { LOOKUP_MS, LOOKUP_WAIT_MS, type Lookups } from '../../../internal/delivery/dns/lookups.ts'
import type { LookupOutcome } from '../../../internal/delivery/ports.ts'
import { eventually } from '../../support/eventually.ts'
import { type NameServer, startNameServer } from '../../support/name-server.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { newLookups } from '../fixture.ts'
import { ManualClock } from '../manual-clock.ts'

const KEPT_MS = 5_000
const FAILURE_KEPT_MS = 1_000

describe('lookups', () => {
  let server: NameServer
  let clock: ManualClock
  let lookups: Lookups
  let outcomes: LookupOutcome[]
  let folder: string

  beforeEach(async () => {
    server = await startNameServer()
    clock = new ManualClock()
    outcomes = []
    folder = tempFolder('names')
    await write('hosts', '')
    await write('resolv.conf', '')
    lookups = open()
  })
  afterEach(async () => {
    lookups.close()
    await server.close()
  })

  function open(options: Parameters<typeof newLookups>[0] = {}): Lookups {
    return newLookups({
      clock,
      telemetry: { lookup: (outcome) => outcomes.push(outcome) },
      servers: [server.address],
      files: { hosts: join(folder, 'hosts'), resolvConf: join(folder, 'resolv.conf') },
      ...options,
    })
  }

  /** As editors and the kubelet do: another file in its place. */
  async function write(name: string, text: string): Promise<void> {
    await writeFile(join(folder, 'new'), text)
    await rename(join(folder, 'new'), join(folder, name))
  }

  async function addresses(name: string, customerId = 'c'): Promise<string[]> {
    return (await lookups.resolve(name, customerId)).map(({ address }) => address)
  }

  function failure(name: string, customerId = 'c'): Promise<LookupError> {
    return lookups.resolve(name, customerId).then(
      () => expect.fail(`${name} has an address`),
      (error) => error,
    )
  }

  /** The question has arrived, so what passes now passes for its lookup. */
  async function asked(name: string, times = 2): Promise<void> {
    await eventually(() => server.questions(name).length >= times)
  }

  describe('ask the name servers', () => {
    it('for both families, and know the family of each address', async () => {
      server.on('a.test', { addresses: ['::1', '127.0.0.1', '127.0.0.2'] })
      expect(await lookups.resolve('A.test', 'c')).to.have.deep.members([
        { address: '127.0.0.1', family: 4 },
        { address: '127.0.0.2', family: 4 },
        { address: '::1', family: 6 },
      ])
      expect(outcomes).to.deep.equal(['found'])
    })

    it('over TCP for an answer that UDP cannot hold', async () => {
      const many = Array.from({ length: 200 }, (_, n) => `127.0.1.${n}`)
      server.on('many.test', { addresses: many, truncated: true })
      expect(await addresses('many.test')).to.have.members(many)
      expect(server.questions('many.test').map(({ over }) => over)).to.include.members(['udp', 'tcp'])
    })

    it('and wait for a slow one', async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      server.on('slow.test', { addresses: ['127.0.0.1'], until: promise })
      const slow = addresses('slow.test')
      await asked('slow.test')
      clock.advance(LOOKUP_MS - 1)
      resolve()
      expect(await slow).to.deep.equal(['127.0.0.1'])
    })

    it('and go on with one family soon when the other is silent', async () => {
      server.on('half.test', { addresses: ['127.0.0.1'], silent: 'AAAA' })
      const half = addresses('half.test')
      await eventually(() => clock.pending === 2)
      clock.advance(500)
      expect(await half).to.deep.equal(['127.0.0.1'])
    })

    for (const [rcode, code] of [
      ['NXDOMAIN', 'ENOTFOUND'],
      ['SERVFAIL', 'ESERVFAIL'],
      ['REFUSED', 'EREFUSED'],
    ] as const)
      it(`and fail with ${code} for ${rcode}`, async () => {
        server.on('a.test', { rcode })
        expect(await failure('a.test'))
          .to.be.instanceOf(LookupError)
          .and.include({ code, silent: false })
        expect(outcomes).to.deep.equal(['failed'])
      })

    it('and fail for a name without addresses, and for what is no name', async () => {
      server.on('none.test', {})
      expect(await failure('none.test')).to.include({ code: 'ENODATA' })
      expect(await failure('a..test')).to.include({ code: 'EBADNAME' })
    })

    it('of which the second answers when the first is away', async () => {
      server.on('a.test', { addresses: ['127.0.0.1'] })
      lookups = open({ servers: ['127.0.0.1:1', server.address] })
      expect(await addresses('a.test')).to.deep.equal(['127.0.0.1'])
    })
  })

  describe('that nobody answers', () => {
    it('fail in time when the servers of the name are silent, for ours answer another question', async () => {
      server.on('dead.test', { silent: true })
      const dead = failure('dead.test')
      await asked('dead.test')
      clock.advance(LOOKUP_MS)
      const others = manyOthers()
      expect(await Promise.race([dead, others]))
        .to.be.instanceOf(LookupError)
        .and.include({ code: 'ETIMEOUT', silent: true })
      expect(outcomes).to.include('unanswered').and.not.include('unreachable')
      await others
    })

    /** Takes longer than what ends at once, and not as long as the resolver by itself would go on. */
    async function manyOthers(): Promise<string> {
      for (const n of range(20)) await failure(`n${n}.other.test`)
      return 'it goes on'
    }

    it('say nothing of the name when our name servers are silent, or away', async () => {
      server.deaf(true)
      const dead = failure('a.test')
      await asked('a.test')
      clock.advance(LOOKUP_MS)
      await asked('.', 1)
      clock.advance(LOOKUP_MS)
      expect(await dead).to.be.instanceOf(LookupWithheldError)
      lookups = open({ servers: ['127.0.0.1:1'] })
      expect(await failure('a.test')).to.be.instanceOf(LookupWithheldError)
      expect(outcomes).to.deep.equal(['unreachable', 'unreachable'])
    })

    it('say nothing of the name when our name servers refuse, though they answer a moment later', async () => {
      server.on('a.test', { addresses: ['127.0.0.1'] })
      const servers = ['127.0.0.1:1']
      lookups = open({ servers })
      const refused = failure('a.test')
      servers[0] = server.address
      expect(await refused).to.be.instanceOf(LookupWithheldError)
      clock.advance(FAILURE_KEPT_MS)
      expect(await addresses('a.test')).to.deep.equal(['127.0.0.1'])
      expect(outcomes).to.deep.equal(['unreachable', 'found'])
    })

    it('say nothing of the name when our name servers know but what the search list makes', async () => {
      await write('resolv.conf', 'search svc.test\noptions ndots:5\n')
      for (const name of ['a.test', '.']) server.on(name, { silent: true })
      const outside = failure('a.test')
      await asked('a.test')
      clock.advance(LOOKUP_MS)
      await asked('.', 1)
      clock.advance(LOOKUP_MS)
      expect(await outside).to.be.instanceOf(LookupWithheldError)
      expect(server.questions('a.test.svc.test')).to.have.length(2)
    })

    it('are given up when the service stops', async () => {
      server.on('dead.test', { silent: true })
      lookups = open({ limits: { atOnce: 1 } })
      const ends = [failure('dead.test'), failure('other.test')]
      await asked('dead.test')
      lookups.close()
      expect(await ends[1]).to.be.instanceOf(LookupWithheldError)
      await ends[0]
    })
  })

  describe('of names in files', () => {
    it('ask nobody for what the hosts file has, and see it change', async () => {
      await write('hosts', '127.0.0.7 receiver.shop\n::1 six\n')
      expect(await addresses('Receiver.Shop')).to.deep.equal(['127.0.0.7'])
      expect(await lookups.resolve('six', 'c')).to.deep.equal([{ address: '::1', family: 6 }])
      await write('hosts', '127.0.0.8 receiver.shop\n')
      expect(await addresses('receiver.shop')).to.deep.equal(['127.0.0.8'])
      expect([server.questions(), outcomes]).to.deep.equal([[], []])
    })

    it('know without any server that invalid names have no address', async () => {
      for (const name of ['invalid', 'a.invalid', 'a.b.invalid.'])
        expect(await failure(name), name)
          .to.be.instanceOf(LookupError)
          .and.include({ code: 'ENOTFOUND' })
      expect(server.questions()).to.deep.equal([])
    })

    it('know localhost without any file or server', async () => {
      for (const name of ['localhost', 'localhost.', 'a.localhost'])
        expect(await addresses(name), name).to.have.members(['127.0.0.1', '::1'])
      expect(server.questions()).to.deep.equal([])
    })

    it('complete short names by the search list, and see it change', async () => {
      server.on('receiver.shop.svc.test', { addresses: ['127.0.0.1'] })
      expect(await failure('receiver.shop')).to.include({ code: 'ENOTFOUND' })
      await write('resolv.conf', 'search ns.svc.test svc.test\noptions ndots:5\n')
      clock.advance(FAILURE_KEPT_MS)
      expect(await addresses('receiver.shop')).to.deep.equal(['127.0.0.1'])
      expect(await failure('receiver.shop.')).to.include({ code: 'ENOTFOUND' })
    })
  })

  describe('are kept', () => {
    it('as long as their records say, for 5 s at most', async () => {
      server.on('long.test', { addresses: ['127.0.0.1'], ttl: 600 })
      server.on('short.test', { addresses: ['127.0.0.1'], ttl: 1 })
      server.on('never.test', { addresses: ['127.0.0.1'], ttl: 0 })
      const all = async () => {
        for (const name of ['long.test', 'short.test', 'never.test']) await addresses(name)
        return ['long.test', 'short.test', 'never.test'].map((name) => server.questions(name).length / 2)
      }
      expect(await all()).to.deep.equal([1, 1, 1])
      expect(await all()).to.deep.equal([1, 1, 2])
      clock.advance(1_000)
      expect(await all()).to.deep.equal([1, 2, 3])
      clock.advance(KEPT_MS)
      expect(await all()).to.deep.equal([2, 3, 4])
    })

    it('for a second when they failed', async () => {
      expect(await failure('later.test')).to.include({ code: 'ENOTFOUND' })
      server.on('later.test', { addresses: ['127.0.0.1'] })
      expect(await failure('later.test', 'another')).to.include({ code: 'ENOTFOUND' })
      clock.advance(FAILURE_KEPT_MS)
      expect(await addresses('later.test')).to.deep.equal(['127.0.0.1'])
      expect(outcomes).to.deep.equal(['failed', 'found'])
    })

    it('by all who ask while one is under way', async () => {
      server.on('dead.test', { silent: true })
      const many = ['a', 'a', 'b', 'c'].map((customerId) => failure('dead.test', customerId))
      await asked('dead.test')
      clock.advance(LOOKUP_MS)
      for (const error of await Promise.all(many)) expect(error).to.include({ code: 'ETIMEOUT' })
      expect(outcomes).to.deep.equal(['unanswered'])
    })
  })

  describe('of several customers', () => {
    beforeEach(() => {
      server.on('*.dead.test', { silent: true })
      server.on('*.fine.test', { addresses: ['127.0.0.1'] })
    })

    for (const dead of [12, 100])
      it(`go on for one while ${dead} names of another are silent`, async () => {
        const ends = range(dead).map((n) => failure(`n${n}.dead.test`, 'a'))
        await asked(`n${Math.min(dead, 64) - 1}.dead.test`)
        // No time passes: nobody waited for a lookup of the other customer to end.
        for (const n of range(100)) expect(await addresses(`n${n}.fine.test`, 'b')).to.have.length(1)
        clock.advance(LOOKUP_WAIT_MS)
        clock.advance(LOOKUP_MS)
        const errors = await Promise.all(ends)
        expect(errors.filter((error) => error instanceof LookupError)).to.have.length(Math.min(dead, 64))
        expect(outcomes.filter((outcome) => outcome === 'refused')).to.have.length(Math.max(0, dead - 64))
        expect(clock.pending).to.equal(0)
      })

    it('are bounded together, and what becomes free goes to those with little', async () => {
      lookups = open({ limits: { atOnce: 16, perCustomer: 4 } })
      const { promise, resolve } = Promise.withResolvers<void>()
      for (const n of range(4)) server.on(`a${n}.dead.test`, { addresses: ['127.0.0.1'], until: promise })
      const all = ['a', 'b', 'c', 'd', 'e'].flatMap((customerId) =>
        range(10).map((n) => lookups.resolve(`${customerId}${n}.dead.test`, customerId)),
      )
      const late = addresses('n.fine.test', 'late')
      await asked('e0.dead.test')
      expect(new Set(server.questions().map(({ name }) => name)).size).to.equal(16)
      resolve()
      expect(await late).to.deep.equal(['127.0.0.1'])
      clock.advance(LOOKUP_WAIT_MS)
      clock.advance(LOOKUP_MS)
      await Promise.allSettled(all)
    })

    it('that wait for a name share the lookup that another began meanwhile', async () => {
      lookups = open({ limits: { perCustomer: 1 } })
      const { promise, resolve } = Promise.withResolvers<void>()
      server.on('first.test', { addresses: ['127.0.0.1'], until: promise })
      const first = addresses('first.test', 'a')
      const waiting = addresses('n.fine.test', 'a')
      await asked('first.test')
      expect(await addresses('n.fine.test', 'b')).to.have.length(1)
      resolve()
      await Promise.all([first, waiting])
      expect(server.questions('n.fine.test')).to.have.length(2)
      expect(await addresses('next.fine.test', 'a'), 'its place is free again').to.have.length(1)
    })
  })
})

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}
