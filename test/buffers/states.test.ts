import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BufferChanges } from '../../internal/buffers/changes.ts'
import { BufferStatesReading, QUEUED, type StateStore, WAITERS } from '../../internal/buffers/states.ts'
import type { Principal, Scope } from '../../internal/domain/principal.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

const here = new AbortController().signal
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('buffers: reading of states', () => {
  it('reads nothing for those who have gone before their turn', async () => {
    const { reading, store } = made()
    const running = reading.states(of('acme'), { waitMs: 0, gone: here })
    const gone = new AbortController()
    const left = Array.from({ length: 50 }, () =>
      reading.states(of('acme'), { waitMs: 0, gone: gone.signal }).catch(statusOf),
    )
    await turn()
    gone.abort()
    expect(new Set(await Promise.all(left))).to.deep.equal(new Set([429]))
    expect(await reading.states(of('acme'), { waitMs: 0, gone: gone.signal }).catch(statusOf)).to.equal(429)
    store.release()
    await running
    await turn()
    expect(store.begun.length).to.equal(1)
  })

  it('reads for a client that ended its side while nobody is before it', async () => {
    const { reading, store } = made()
    const answer = reading.states(of('acme'), { waitMs: 0, gone: AbortSignal.abort() })
    store.release()
    expect((await answer).buffers).to.deep.equal([])
  })

  it('reads once for all of a scope that ask while another reading runs, after they asked', async () => {
    const { reading, store } = made()
    const ask = (customerId: string, projectIds?: string[]) =>
      reading.states(of(customerId, projectIds), { waitMs: 0, gone: here })
    const first = ask('acme')
    const same = [ask('acme'), ask('acme'), ask('acme')]
    const ofProjects = [ask('acme', ['b', 'a']), ask('acme', ['a', 'b'])]
    const other = ask('globex')
    await turn()
    expect(store.begun.map(({ customerId }) => customerId)).to.deep.equal(['acme', 'globex'])
    store.release()
    await Promise.all([first, ...same, ...ofProjects, other])
    const scopes = store.begun.filter(({ customerId }) => customerId === 'acme')
    expect(scopes.map(({ projectIds }) => projectIds)).to.deep.equal([null, null, ['b', 'a']])
  })

  it('tells all who share a reading that it failed, and reads anew for the next', async () => {
    const { reading, store } = made()
    const first = reading.states(of('acme'), { waitMs: 0, gone: here })
    store.failure = new Error('away')
    const shared = [1, 2].map(() => reading.states(of('acme'), { waitMs: 0, gone: here }).catch(String))
    store.release()
    expect(await Promise.all(shared)).to.deep.equal(['Error: away', 'Error: away'])
    expect(await first.catch(String)).to.equal('Error: away')
    store.failure = undefined
    expect((await reading.states(of('acme'), { waitMs: 0, gone: here })).buffers).to.deep.equal([])
  })

  it('refuses what is beyond the line of a customer, and nobody else', async () => {
    const { reading, store } = made()
    const gone = new AbortController()
    const ask = (customerId = 'acme', signal = here) =>
      reading.states(of(customerId), { waitMs: 0, gone: signal })
    // The first does not stand in the line: it is read for.
    const kept = Array.from({ length: QUEUED }, () => ask())
    const leaving = ask('acme', gone.signal).catch(statusOf)
    const refused = await ask().catch((error) => error)
    expect(refused).to.include({ status: 429 })
    expect(refused.retryAfter).to.be.at.least(1)
    kept.push(ask('globex'))
    gone.abort()
    expect(await leaving).to.equal(429)
    kept.push(ask())
    store.release()
    await Promise.all(kept)
  })

  it('answers at once who asks beyond those that may wait', async () => {
    const { reading, store, changes } = made()
    store.release()
    const { tag } = await reading.states(of('acme'), { waitMs: 0, gone: here })
    const wait = () => reading.states(of('acme'), { after: tag, waitMs: 60_000, gone: here })
    let answered = 0
    const waiting = Array.from({ length: WAITERS.customer }, () => wait().finally(() => answered++))
    expect((await wait()).tag).to.equal(tag)
    expect(answered).to.equal(0)
    changes.close()
    await Promise.all(waiting)
  })
})

function made() {
  const store = new HeldStore()
  const changes = new BufferChanges({ customersOf: async () => [] })
  return { store, changes, reading: new BufferStatesReading({ store, changes, clock: systemClock() }) }
}

function of(customerId: string, projectIds?: string[]): Principal {
  return { customerId, role: 'viewer', via: 'key', ...(projectIds && { projectIds }) }
}

function statusOf(error: { status?: number }): number | undefined {
  return error.status
}

/** Customers without buffers; a reading ends once it is released. */
class HeldStore implements StateStore {
  readonly begun: Scope[] = []
  failure: Error | undefined
  readonly #released = Promise.withResolvers<void>()

  marks(scope: Scope): Promise<never[]> {
    return this.states(scope)
  }

  async states(scope: Scope): Promise<never[]> {
    this.begun.push(scope)
    await this.#released.promise
    if (this.failure) throw this.failure
    return []
  }

  release(): void {
    this.#released.resolve()
  }
}
