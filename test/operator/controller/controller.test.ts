import { expect } from 'chai'
import { describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { Controller, type PassResult } from '../../../operator/controller/controller.ts'
import type { Reconciler } from '../../../operator/controller/ports.ts'
import { WORKERS } from '../../../operator/controller/turns.ts'
import { WorkQueue } from '../../../operator/controller/work-queue.ts'
import { eventually } from '../../support/eventually.ts'

interface Passed {
  result: PassResult
}

function fixture(reconcile: Reconciler['reconcile'], drainMs?: number) {
  const clock = systemClock()
  const queue = new WorkQueue(clock)
  const passes: Passed[] = []
  const warnings: Record<string, unknown>[] = []
  const controller = new Controller({
    queue,
    clock,
    reconciler: { reconcile },
    log: { debug: () => {}, warn: (fields) => warnings.push(fields) },
    telemetry: { pass: ({ result }) => passes.push({ result }) },
    ...(drainMs === undefined ? {} : { drainMs }),
  })
  return { controller, queue, passes, warnings }
}

/** Twenty namespaces that the controller knows to be quick by the passes of `<namespace>/known`. */
async function knownNamespaces({ queue, passes }: ReturnType<typeof fixture>): Promise<string[]> {
  const namespaces = Array.from({ length: 20 }, (_, index) => `ns-${index}`)
  for (const namespace of namespaces) queue.add(`${namespace}/known`)
  await eventually(() => passes.length === namespaces.length)
  passes.length = 0
  return namespaces
}

describe('the controller', () => {
  it('repeats a key that always fails, and serves 99 others meanwhile', async () => {
    const served = new Map<string, number>()
    const { controller, queue, passes, warnings } = fixture(async (key) => {
      served.set(key, (served.get(key) ?? 0) + 1)
      if (key === 'ns/0') throw new Error('refused')
      return {}
    })
    for (let index = 0; index < 100; index++) queue.add(`ns/${index}`)
    controller.start()
    await eventually(() => served.size === 100 && served.get('ns/0')! >= 4)
    await controller.stop()
    for (let index = 1; index < 100; index++) expect(served.get(`ns/${index}`)).to.equal(1)
    expect(passes.filter(({ result }) => result === 'success')).to.have.length(99)
    expect(warnings.every(({ resource, err }) => resource === 'ns/0' && err instanceof Error)).to.equal(true)
    expect(warnings.map(({ failures }) => failures).slice(0, 4)).to.deep.equal([1, 2, 3, 4])
  })

  it('runs as many passes at once as it has workers, and never two of one key', async () => {
    const gate = Promise.withResolvers<void>()
    const running: string[] = []
    let most = 0
    let twice = 0
    const parts = fixture(async (key) => {
      if (key.endsWith('known')) return {}
      if (running.includes(key)) twice++
      running.push(key)
      most = Math.max(most, running.length)
      await gate.promise
      running.splice(running.indexOf(key), 1)
      return {}
    })
    const { controller, queue } = parts
    controller.start()
    for (const namespace of await knownNamespaces(parts)) queue.add(`${namespace}/a`)
    await eventually(() => running.length === WORKERS)
    for (let add = 0; add < 100; add++) queue.add('ns-0/a')
    gate.resolve()
    await eventually(() => running.length === 0 && queue.depth === 0)
    await controller.stop()
    expect([most, twice]).to.deep.equal([WORKERS, 0])
  })

  it('makes another pass when the last one asked for it', async () => {
    let passes = 0
    const {
      controller,
      queue,
      passes: told,
    } = fixture(async () => (++passes === 1 ? { requeueAfterMs: 5 } : {}))
    controller.start()
    queue.add('ns/a')
    await eventually(() => told.length === 2)
    await controller.stop()
    expect(told.map(({ result }) => result)).to.deep.equal(['requeue', 'success'])
  })

  it('forgets the failures of a key that succeeds', async () => {
    let passes = 0
    const {
      controller,
      queue,
      passes: told,
    } = fixture(async () => {
      if (++passes < 3) throw new Error('not yet')
      return {}
    })
    controller.start()
    queue.add('ns/a')
    await eventually(() => told.length === 3)
    expect([queue.failures('ns/a'), queue.failing]).to.deep.equal([0, 0])
    await controller.stop()
  })

  it('lets a running pass end when it stops, and begins none that waits', async () => {
    const gate = Promise.withResolvers<void>()
    const begun: string[] = []
    const parts = fixture(async (key, signal) => {
      if (key.endsWith('known')) return {}
      begun.push(key)
      await gate.promise
      expect(signal.aborted).to.equal(false)
      return {}
    })
    const { controller, passes, queue } = parts
    controller.start()
    for (const namespace of await knownNamespaces(parts)) queue.add(`${namespace}/a`)
    await eventually(() => begun.length === WORKERS)
    const stopped = controller.stop()
    gate.resolve()
    await stopped
    expect([begun.length, passes.map(({ result }) => result)]).to.deep.equal([
      WORKERS,
      Array(WORKERS).fill('success'),
    ])
  })

  it('aborts a pass that outlasts the drain, and repeats nothing of it', async () => {
    const { controller, queue, passes, warnings } = fixture(
      (_key, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      10,
    )
    controller.start()
    queue.add('ns/a')
    await eventually(() => queue.depth === 0)
    await controller.stop()
    expect([passes, warnings]).to.deep.equal([[{ result: 'stopped' }], []])
  })
})
