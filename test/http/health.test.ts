import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createHealth, takesTraffic } from '../../internal/http/health.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

const works = () => Promise.resolve()
const fails = () => Promise.reject(new Error('secret of the inside'))

describe('health', () => {
  it('is ok while every check holds, and tells no more than which does not', async () => {
    const well = await createHealth(systemClock(), '1.2.3', { postgres: works, nats: works })()
    expect(well).to.deep.equal({ status: 'ok', version: '1.2.3', checks: { postgres: 'ok', nats: 'ok' } })
    const ill = await createHealth(systemClock(), '1.2.3', { postgres: fails, nats: works })()
    expect(ill).to.deep.equal({
      status: 'unavailable',
      version: '1.2.3',
      checks: { postgres: 'down', nats: 'ok' },
    })
  })

  it('is degraded, and still takes traffic, where a notice does not hold', async () => {
    const state = (holds: boolean) =>
      createHealth(systemClock(), '1', { postgres: works }, { secrets: () => holds })()
    expect((await state(true)).checks).to.deep.equal({ postgres: 'ok', secrets: 'ok' })
    const degraded = await state(false)
    expect(degraded).to.deep.include({ status: 'ok', checks: { postgres: 'ok', secrets: 'degraded' } })
    expect(takesTraffic(degraded)).to.equal(true)
  })

  it('takes a check that throws or never answers for a failed one', async () => {
    const clock = { ...systemClock(), after: (_ms: number, task: () => void) => systemClock().after(1, task) }
    const throws = () => {
      throw new Error('at once')
    }
    const { checks } = await createHealth(clock, '1', { throws, hangs: () => new Promise(() => {}) })()
    expect(checks).to.deep.equal({ throws: 'down', hangs: 'down' })
  })

  it('runs each check once for all who ask meanwhile', async () => {
    let runs = 0
    const health = createHealth(systemClock(), '1', { counted: async () => runs++ })
    await Promise.all([health(), health(), health()])
    expect(runs).to.equal(1)
    await health()
    expect(runs).to.equal(2)
  })

  it('a dependency that is down keeps traffic away, a stopped shard or inbox does not', async () => {
    const state = (checks: Parameters<typeof createHealth>[2]) => createHealth(systemClock(), '1', checks)()
    expect(takesTraffic(await state({ postgres: works, nats: works, shards: works }))).to.equal(true)
    expect(takesTraffic(await state({ postgres: fails, nats: works, shards: works }))).to.equal(false)
    expect(takesTraffic(await state({ postgres: works, nats: fails, shards: works }))).to.equal(false)
    const stopped = await state({ postgres: works, nats: works, shards: fails })
    expect([stopped.status, takesTraffic(stopped)]).to.deep.equal(['unavailable', true])
    const refusing = await state({ postgres: works, nats: works, inboxes: fails })
    expect([refusing.status, takesTraffic(refusing)]).to.deep.equal(['unavailable', true])
  })
})
