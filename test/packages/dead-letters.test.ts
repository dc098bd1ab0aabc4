/** The order in which `packages/client` gives dead letters, over pages as the API has them. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { components } from '../../packages/client/src/api.ts'
import { newestFirst, oldestFirst, type ReadPage } from '../../packages/client/src/dead-letters.ts'

type Dead = components['schemas']['DlqItem']

const dead = (n: number) => ({ dlqId: `dlq_${String(n).padStart(4, '0')}`, createdAt: n >> 1 }) as Dead

/** Numbers of dead letters, oldest first, in pages of `size`; two share each time of creation. */
class Queue {
  readonly numbers: number[]
  readonly #size: () => number

  constructor(count: number, size: () => number) {
    this.numbers = Array.from({ length: count }, (_, n) => n)
    this.#size = size
  }

  readonly read: ReadPage = async (cursor) => {
    const [, dlqId = 'e'] = cursor?.split('_dlq').map((part) => `dlq${part}`) ?? []
    const behind = this.numbers.map(dead).filter((each) => each.dlqId < dlqId)
    return behind.reverse().slice(0, this.#size())
  }
}

async function walked(queue: Queue, visit: (n: number) => void = () => {}): Promise<number[]> {
  const seen: number[] = []
  for await (const { dlqId } of oldestFirst(queue.read)) {
    seen.push(Number(dlqId.slice(4)))
    visit(seen.at(-1)!)
  }
  return seen
}

describe('a walk over dead letters', () => {
  const all = Array.from({ length: 1_200 }, (_, n) => n)

  it('gives all of them, oldest first', async () => {
    for (const count of [0, 1, 500, 501, 1_200])
      expect(await walked(new Queue(count, () => 500))).to.deep.equal(all.slice(0, count))
  })

  it('gives all of them while its caller removes each', async () => {
    const queue = new Queue(1_200, () => 500)
    const remove = (n: number) => queue.numbers.splice(queue.numbers.indexOf(n), 1)
    expect(await walked(queue, remove)).to.deep.equal(all)
  })

  it('gives those that come meanwhile last, each once', async () => {
    const queue = new Queue(1_000, () => 500)
    const grow = (n: number) =>
      queue.numbers.length < 1_200 && n % 2 === 0 && queue.numbers.push(queue.numbers.length)
    const seen = await walked(queue, grow)
    expect(seen.slice(0, 1_000)).to.deep.equal(all.slice(0, 1_000))
    expect(seen).to.deep.equal(all.slice(0, seen.length))
  })

  it('gives each once when pages end sooner than before', async () => {
    let reads = 0
    expect(await walked(new Queue(1_200, () => (reads++ < 5 ? 300 : 70)))).to.deep.equal(all)
  })

  it('gives the newest first over pages, and reads no more of them than it needs', async () => {
    const queue = new Queue(1_200, () => 500)
    let reads = 0
    const read: ReadPage = (cursor) => {
      reads++
      return queue.read(cursor)
    }
    const seen: number[] = []
    for await (const { dlqId } of newestFirst(read)) {
      seen.push(Number(dlqId.slice(4)))
      if (seen.length === 600) break
    }
    expect([seen, reads]).to.deep.equal([all.slice(600).reverse(), 2])
  })
})
