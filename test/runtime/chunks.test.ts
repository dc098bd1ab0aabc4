import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Chunks, type Entry } from '../../internal/runtime/chunks.ts'

const SEED = Number(process.env.CHUNKS_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** The same without chunks: a map, sorted when it is asked. */
class Plain {
  readonly #values = new Map<string, Entry<number>>()

  constructor(entries: Iterable<Entry<number>> = []) {
    for (const entry of entries) this.set(...entry)
  }

  set(major: number, minor: number, value: number): void {
    this.#values.set(`${major}/${minor}`, [major, minor, value])
  }

  get(major: number, minor: number): number | undefined {
    return this.#values.get(`${major}/${minor}`)?.[2]
  }

  delete(major: number, minor: number): boolean {
    return this.#values.delete(`${major}/${minor}`)
  }

  pruneBelow(major: number): void {
    for (const [key, entry] of this.#values) if (entry[0] < major) this.#values.delete(key)
  }

  copy(): Plain {
    return new Plain(this.#values.values())
  }

  get entries(): Entry<number>[] {
    return [...this.#values.values()].sort(([a, b], [c, d]) => a - c || b - d)
  }
}

function expectSame(chunks: Chunks<number>, plain: Plain): void {
  const { entries } = plain
  expect([...chunks.entries()]).to.deep.equal(entries)
  expect(chunks.size).to.equal(entries.length)
  expect(chunks.first).to.deep.equal(entries[0])
  expect(chunks.last).to.deep.equal(entries.at(-1))
}

/** A run of keys from `from` on, each `step` above the last: long enough to split chunks. */
const run = fc.record({
  what: fc.constantFrom('set', 'set', 'set', 'delete', 'delete', 'prune', 'copy', 'back'),
  from: fc.integer({ min: 0, max: 2_000 }),
  count: fc.integer({ min: 1, max: 700 }),
  step: fc.integer({ min: 1, max: 3 }),
  down: fc.boolean(),
  minors: fc.integer({ min: 1, max: 3 }),
})

describe('runtime: a sorted map in chunks', () => {
  it(`holds what a map and a sort would, and so does each copy (CHUNKS_SEED=${SEED})`, () => {
    fc.assert(
      fc.property(fc.array(run, { maxLength: 15 }), (runs) => {
        const all: [Chunks<number>, Plain][] = [[new Chunks<number>(), new Plain()]]
        for (const [number, { what, from, count, step, down, minors }] of runs.entries()) {
          const [chunks, plain] = all.at(-1)!
          if (what === 'copy') all.push([chunks.copy(), plain.copy()])
          // The one that was copied goes on, too.
          if (what === 'back') all.unshift(all.pop()!)
          if (what === 'prune') {
            chunks.pruneBelow(from)
            plain.pruneBelow(from)
          }
          if (what !== 'set' && what !== 'delete') continue
          for (let n = 0; n < count; n++) {
            const major = from + step * (down ? count - n : n)
            const minor = n % minors
            if (what === 'set') {
              chunks.set(major, minor, number)
              plain.set(major, minor, number)
            } else expect(chunks.delete(major, minor)).to.equal(plain.delete(major, minor))
            expect(chunks.get(major, minor)).to.equal(plain.get(major, minor))
          }
        }
        for (const [chunks, plain] of all) expectSame(chunks, plain)
      }),
      { numRuns: 50, seed: SEED },
    )
  })

  it(`is walked in order while it changes: each entry that stays comes once (CHUNKS_SEED=${SEED})`, () => {
    const change = fc.record({ major: fc.integer({ min: 0, max: 3_000 }), isSet: fc.boolean() })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 3_000 }), (changes) => {
        const chunks = new Chunks<number>()
        for (let major = 0; major < 3_000; major++) chunks.set(major, 0, major)
        const touched = new Set<number>()
        const walked: number[] = []
        for (const [major] of chunks.entries()) {
          walked.push(major)
          const next = changes.pop()
          if (!next) continue
          touched.add(next.major)
          if (next.isSet) chunks.set(next.major, 1, 0)
          else chunks.delete(next.major)
        }
        expect(walked).to.deep.equal([...walked].sort((a, b) => a - b))
        const stayed = Array.from({ length: 3_000 }, (_, major) => major).filter(
          (major) => !touched.has(major),
        )
        expect(walked.filter((major) => !touched.has(major))).to.deep.equal(stayed)
      }),
      { numRuns: 30, seed: SEED },
    )
  })
})
