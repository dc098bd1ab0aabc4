import { expect } from 'chai'
import { describe, it } from 'mocha'
import { retry } from '../../internal/runtime/retry.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('runtime: retries', () => {
  it('go on after each pause until the work succeeds, and tell each failure', async () => {
    const clock = new ManualClock()
    const failures: unknown[] = []
    let left = 2
    const work = async () => {
      if (left > 0) throw new Error(`${left--} left`)
      return 'done'
    }
    const done = retry(work, { clock, pauseMs: 500, onFailure: (error) => void failures.push(error) })
    await settled()
    clock.advance(499)
    await settled()
    expect(failures).to.have.length(1)
    clock.advance(1)
    await settled()
    expect(failures).to.have.length(2)
    clock.advance(500)
    expect(await done).to.equal('done')
    expect(failures.map(String)).to.deep.equal(['Error: 2 left', 'Error: 1 left'])
  })

  it('go on after pauses between half and one and a half of what they are told', async () => {
    for (const [fraction, pause] of [
      [0, 250],
      [0.5, 500],
      [0.999, 750],
    ] as const) {
      const clock = new ManualClock()
      let tries = 0
      const work = async () => {
        if (tries++ === 0) throw new Error('once')
      }
      const done = retry(work, { clock, pauseMs: 500, fraction: () => fraction, onFailure: () => {} })
      await settled()
      clock.advance(pause - 1)
      await settled()
      expect(tries).to.equal(1)
      clock.advance(1)
      await done
    }
  })

  it('end with what is thrown out of a failure', async () => {
    const onFailure = (error: unknown) => {
      throw error
    }
    const ended = retry(() => Promise.reject(new Error('fenced')), {
      clock: new ManualClock(),
      pauseMs: 1,
      onFailure,
    })
    expect(await ended.catch(String)).to.equal('Error: fenced')
  })

  it('await what a failure leads to, and end with what it rejects with', async () => {
    const onFailure = async (error: unknown) => {
      await settled()
      throw error
    }
    const ended = retry(() => Promise.reject(new Error('fenced')), {
      clock: new ManualClock(),
      pauseMs: 1,
      onFailure,
    })
    expect(await ended.catch(String)).to.equal('Error: fenced')
  })
})
