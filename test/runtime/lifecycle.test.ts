import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Clock } from '../../internal/runtime/clock.ts'
import { Lifecycle, SHUTDOWN_BUDGET_MS, StoppingError } from '../../internal/runtime/lifecycle.ts'

const log = { info: () => {}, error: () => {}, fatal: () => {} }

describe('a lifecycle', () => {
  it('releases in the reverse order of acquisition, one at a time', async () => {
    const { lifecycle } = fixture()
    const events: string[] = []
    for (const name of ['first', 'second']) {
      await lifecycle.acquire(
        name,
        () => name,
        async (resource) => {
          events.push(`${resource} begins`)
          await Promise.resolve()
          events.push(`${resource} ends`)
        },
      )
    }
    expect(await lifecycle.shutdown()).to.deep.equal([])
    expect(events).to.deep.equal(['second begins', 'second ends', 'first begins', 'first ends'])
  })

  it('reports every release that fails, and goes on with the others', async () => {
    const { lifecycle } = fixture()
    const released: string[] = []
    await lifecycle.acquire(
      'good',
      () => 1,
      () => released.push('good'),
    )
    await lifecycle.acquire(
      'bad',
      () => 1,
      () => Promise.reject(new Error('no')),
    )
    await lifecycle.acquire(
      'worse',
      () => 1,
      () => {
        throw new Error('never')
      },
    )
    const errors = await lifecycle.shutdown()
    expect(errors.map(({ message }) => message)).to.deep.equal([
      'worse was not released: Error: never',
      'bad was not released: Error: no',
    ])
    expect(released).to.deep.equal(['good'])
  })

  it('does not wait past its budget, and still tries what is left', async () => {
    const { lifecycle, pass } = fixture()
    const released: string[] = []
    await lifecycle.acquire(
      'last',
      () => 1,
      () => released.push('last'),
    )
    const stuck = await lifecycle.acquire(
      'stuck',
      () => Promise.withResolvers<void>(),
      (begun) => {
        begun.resolve()
        return new Promise(() => {})
      },
    )
    const shutdown = lifecycle.shutdown()
    await stuck.promise
    pass(SHUTDOWN_BUDGET_MS)
    expect((await shutdown).map(({ message }) => message)).to.deep.equal(['stuck was not released in time'])
    expect(released).to.deep.equal(['last'])
  })

  it('tells a start under way to stop, waits for it, and starts nothing more', async () => {
    const { lifecycle } = fixture()
    const released: string[] = []
    const untilTold = (signal: AbortSignal) =>
      new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('slow')))
    const slow = lifecycle.acquire('slow', untilTold, (name) => released.push(name)).catch((error) => error)
    expect(await lifecycle.shutdown()).to.deep.equal([])
    expect(released).to.deep.equal(['slow'])
    expect(await slow).to.be.instanceOf(StoppingError)
    const late = lifecycle.acquire(
      'late',
      () => released.push('started'),
      () => {},
    )
    expect(await late.catch((error) => error)).to.be.instanceOf(StoppingError)
    expect(released).to.deep.equal(['slow'])
  })

  it('takes the failure of a start that it overtook for the stop that it is', async () => {
    const { lifecycle } = fixture()
    const untilTold = (signal: AbortSignal) =>
      new Promise<string>((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('given up'))),
      )
    const start = lifecycle.acquire('start', untilTold, () => {}).catch((error) => error)
    expect(await lifecycle.shutdown()).to.deep.equal([])
    expect(await start).to.be.instanceOf(StoppingError)
  })

  it('releases once, however often it is asked', async () => {
    const { lifecycle } = fixture()
    let released = 0
    await lifecycle.acquire(
      'once',
      () => 1,
      () => released++,
    )
    await Promise.all([lifecycle.shutdown(), lifecycle.shutdown()])
    expect(released).to.equal(1)
  })
})

/** A lifecycle on a clock that stands still until `pass` moves it. */
function fixture(): { lifecycle: Lifecycle; pass: (ms: number) => void } {
  let now = 0
  const tasks = new Map<object, { due: number; task: () => void }>()
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after(ms, task) {
      const id = {}
      tasks.set(id, { due: now + ms, task })
      return () => tasks.delete(id)
    },
  }
  const pass = (ms: number) => {
    now += ms
    for (const { due, task } of tasks.values()) if (due <= now) task()
  }
  return { lifecycle: new Lifecycle(clock, log), pass }
}
