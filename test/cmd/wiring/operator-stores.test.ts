/** What asks the operator for a pass. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { createStores, feed, type Stores } from '../../../cmd/wiring/operator-stores.ts'
import type { Logger } from '../../../internal/telemetry/logger.ts'
import { keyOf } from '../../../operator/controller/ports.ts'
import { WorkQueue } from '../../../operator/controller/work-queue.ts'
import { type BufferResource, FINALIZER, RESUME_ANNOTATION } from '../../../operator/resource.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { resource, secret } from '../../operator/reconcile/fixtures.ts'

describe('a pass for a Buffer is asked for', () => {
  let stores: Stores
  let queue: WorkQueue
  let removed: string[]
  const stored = resource({})

  beforeEach(async () => {
    const fault = (fields: { err: Error }) => {
      throw fields.err
    }
    stores = createStores({ error: fault } as unknown as Logger)
    queue = new WorkQueue(new ManualClock())
    removed = []
    stores.buffers.put(stored)
    feed(queue, stores, (last) => void removed.push(keyOf(last)))
    expect(await asked()).to.deep.equal([keyOf(stored)])
  })

  /** Keys that wait for a pass, which is then over. */
  async function asked(): Promise<string[]> {
    const keys: string[] = []
    while (queue.depth > 0) {
      const { key } = (await queue.take())!
      queue.done(key)
      keys.push(key)
    }
    return keys
  }

  const changed = (change: Partial<BufferResource['metadata']>, more: Partial<BufferResource> = {}) =>
    stores.buffers.put({
      ...stored,
      ...more,
      metadata: { ...stored.metadata, resourceVersion: 'new', ...change },
    })

  it('not when its status or a foreign annotation changes', async () => {
    changed({}, { status: { enabled: false } })
    changed({ annotations: { 'example.com/note': 'x' } })
    expect(await asked()).to.deep.equal([])
  })

  const changes: [string, Partial<BufferResource['metadata']>][] = [
    ['its description changes', { generation: 99 }],
    ['it is deleted', { deletionTimestamp: '2026-03-01T12:00:00Z' }],
    ['somebody asks it to resume', { annotations: { [RESUME_ANNOTATION]: 'now' } }],
    ['its finalizers change', { finalizers: [FINALIZER, 'example.com/other'] }],
  ]
  for (const [what, change] of changes) {
    it(`when ${what}`, async () => {
      changed(change)
      expect(await asked()).to.deep.equal([keyOf(stored)])
    })
  }

  it('when it comes and goes', async () => {
    stores.buffers.remove(stored)
    expect(await asked()).to.deep.equal([keyOf(stored)])
    expect(removed).to.deep.equal([keyOf(stored)])
    stores.buffers.put(stored)
    expect(await asked()).to.deep.equal([keyOf(stored)])
  })

  it('when a Secret that it names comes, changes or goes, and not for another', async () => {
    const named = secret('penstock', { apiKey: 'a' }, '1')
    for (const act of [
      () => stores.secrets.put(named),
      () => stores.secrets.put(secret('penstock', { apiKey: 'b' }, '2')),
      () => stores.secrets.remove(named),
    ]) {
      act()
      expect(await asked()).to.deep.equal([keyOf(stored)])
    }
    stores.secrets.put(secret('unrelated', { apiKey: 'a' }))
    expect(await asked()).to.deep.equal([])
  })
})
