import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { Semaphores } from '../../internal/runtime/semaphores.ts'

/** Works that end when they are told to, and the order in which they began. */
function works(semaphores: Semaphores) {
  const began: string[] = []
  const ends = new Map<string, () => void>()
  const start = (name: string, label: string) =>
    semaphores.run(name, () => {
      began.push(label)
      return new Promise<void>((resolve) => ends.set(label, resolve))
    })
  const end = async (label: string) => {
    ends.get(label)!()
    await setImmediate()
  }
  return { began, start, end }
}

describe('semaphores by name', () => {
  it('let so many works of a name run at once, in order, and none of another name wait', async () => {
    const { began, start, end } = works(new Semaphores(2))
    const all = ['a1', 'a2', 'a3', 'a4', 'b1'].map((label) => start(label.charAt(0), label))
    await setImmediate()
    expect(began).to.deep.equal(['a1', 'a2', 'b1'])
    await end('a2')
    expect(began).to.deep.equal(['a1', 'a2', 'b1', 'a3'])
    await end('a1')
    for (const label of ['a3', 'a4', 'b1']) await end(label)
    await Promise.all(all)
    expect(began).to.deep.equal(['a1', 'a2', 'b1', 'a3', 'a4'])
  })

  it('free the slot of a work that fails, and hold nothing of a name that rests', async () => {
    const semaphores = new Semaphores(1)
    const failing = semaphores.run('a', () => Promise.reject(new Error('no')))
    const next = semaphores.run('a', () => Promise.resolve(semaphores.size))
    expect(await failing.catch(String)).to.equal('Error: no')
    expect([await next, semaphores.size]).to.deep.equal([1, 0])
  })

  it('keep the slot of a work until what comes after it is over, and not of one that fails', async () => {
    const semaphores = new Semaphores(1)
    let end = (): void => {}
    const after = () => new Promise<void>((resolve) => (end = resolve))
    const failing = semaphores.run('a', () => Promise.reject(new Error('no')), after)
    expect(await failing.catch(String)).to.equal('Error: no')
    expect(await semaphores.run('a', () => Promise.resolve('done'), after)).to.equal('done')
    let began = false
    const next = semaphores.run('a', async () => {
      began = true
    })
    await setImmediate()
    expect([began, semaphores.waiting('a'), semaphores.waiting('b')]).to.deep.equal([false, 1, 0])
    end()
    await next
    expect([semaphores.waiting('a'), semaphores.size]).to.deep.equal([0, 0])
  })

  it('let everything run when there is no bound', async () => {
    const semaphores = new Semaphores(Number.POSITIVE_INFINITY)
    const { began, start, end } = works(semaphores)
    const all = Array.from({ length: 50 }, (_, n) => start('a', String(n)))
    await setImmediate()
    expect([began.length, semaphores.size]).to.deep.equal([50, 0])
    for (const label of [...began]) await end(label)
    await Promise.all(all)
  })
})
