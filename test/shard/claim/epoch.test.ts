/** The claim in Postgres: what it is compared with, and in which order (docs/architecture/protocol.md, "Fencing in Postgres"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { raiseEpoch } from '../../../internal/shard/claim/epoch.ts'
import type { ReadSnapshot } from '../../../internal/shard/claim/journal-reading.ts'
import { type CommitName, commitName, NO_COMMIT } from '../../../internal/shard/journal/commit-name.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { type Fence, FencedError } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { commitAt } from '../../support/commit-names.ts'
import { eventually } from '../../support/eventually.ts'

const FIRST = 5
const EPOCH = 10

const bytesOf = (seq: number) => Buffer.from(`commit ${seq}`)
const nameOf = (seq: number) => commitName(seq, bytesOf(seq))
const otherAt = (seq: number) => commitName(seq, Buffer.from('of another history'))

/** At the journal's beginning, and so that the claim was the last one up to there. */
const snapshotOf = (claim: number): ReadSnapshot => ({ name: nameOf(FIRST), bytes: 1, claim })

/** A journal with commits from `FIRST` to the claim, and a Postgres that knows something of it. */
class Claiming {
  claim: CommitName = NO_COMMIT
  counted: CommitName = NO_COMMIT
  /** The journal was cut behind it. */
  snapshot: ReadSnapshot | null = null
  /** Where the server that is asked has its last commit. */
  lastSeq = EPOCH
  /** Where the server that is asked has commits of another history. */
  readonly others = new Set<number>()
  readonly steps: string[] = []
  readonly problems: string[] = []
  readonly clock = new ManualClock()
  readonly fence = { shard: 0, epoch: EPOCH, identity: nameOf(EPOCH).identity }
  beforeReplacing = () => {}
  proofs: (() => void)[] = []
  ended: Error | null = null

  async *range(from: number, to: number) {
    this.steps.push(`range ${from} ${to}`)
    for (let seq = Math.max(from, FIRST); seq <= Math.min(to, this.lastSeq); seq++)
      yield { seq, at: 0, msgId: null, data: this.others.has(seq) ? bytesOf(-seq) : bytesOf(seq) }
  }

  async prove() {
    this.steps.push('prove')
    this.proofs.shift()?.()
  }

  async replaceEpoch({ epoch, identity = null }: Fence, known: CommitName) {
    this.beforeReplacing()
    this.beforeReplacing = () => {}
    if (this.claim.seq !== known.seq || this.claim.identity !== known.identity) return false
    this.claim = { seq: epoch, identity }
    this.steps.push('replace')
    return true
  }

  /** What a loss leaves. */
  async raiseEpoch({ epoch, identity = null }: Fence) {
    this.claim = { seq: epoch, identity }
    this.steps.push('remember')
  }

  begin(): Promise<void> {
    return raiseEpoch({
      fence: this.fence,
      snapshot: this.snapshot,
      origin: undefined,
      deadLetters: {
        remembered: async () => ({ claim: this.claim, counted: this.counted }),
        replaceEpoch: (fence, known) => this.replaceEpoch(fence, known),
        raiseEpoch: (fence) => this.raiseEpoch(fence),
      },
      clock: this.clock,
      journal: { prove: () => this.prove() },
      log: { range: (from, to) => this.range(from, to) },
      ended: () => false,
      onFatal: (error) => {
        this.ended = error
      },
      onProblem: (what, error) => this.problems.push(`${what}: ${error}`),
    })
  }

  async expectRaised(): Promise<void> {
    await this.begin()
    expect(this.claim).to.deep.equal(nameOf(EPOCH))
    expect(this.ended).to.equal(null)
  }

  async expectLost(what: RegExp): Promise<void> {
    await this.begin().catch(() => {})
    expect(this.ended).to.be.instanceOf(LostTailError)
    expect(this.ended?.message).to.match(what)
    expect(this.steps.filter((step) => step === 'prove')).to.have.length(2)
    expect(this.steps.at(-1)).to.equal('remember')
  }
}

function claiming(known: Partial<Pick<Claiming, 'claim' | 'counted' | 'lastSeq' | 'snapshot'>>): Claiming {
  return Object.assign(new Claiming(), known)
}

describe('a claim in Postgres', () => {
  for (const [what, known] of Object.entries({
    'nothing is known': {},
    'the journal has both': { claim: nameOf(7), counted: nameOf(8) },
    'both were purged': { claim: otherAt(3), counted: otherAt(FIRST - 1) },
    'the snapshot holds it': { claim: commitAt(3), snapshot: snapshotOf(3) },
    'the snapshot holds a later one': { claim: commitAt(3), snapshot: snapshotOf(4) },
    'it stands behind the snapshot': { claim: nameOf(7), snapshot: snapshotOf(3) },
    'only their sequences are known': { claim: commitAt(7), counted: commitAt(8) },
    'it is known already, as after an answer that was lost': { claim: nameOf(EPOCH) },
  })) {
    it(`is raised where ${what}`, () => claiming(known).expectRaised())
  }

  for (const [what, known, message] of [
    ['another claim stands in the place of the known one', { claim: otherAt(7) }, /commit stands at 7/],
    ['another commit stands where one was counted', { counted: otherAt(8) }, /commit stands at 8/],
    ['the known one is another of the same epoch', { claim: otherAt(EPOCH) }, /knows 10 of another/],
    ['a commit was counted where it stands', { counted: otherAt(EPOCH) }, /knows 10 of another/],
    ['commits above it were counted', { counted: commitAt(12) }, /knows 12 of another/],
    [
      'it was cut off, and the snapshot does not hold it',
      { claim: commitAt(4), snapshot: snapshotOf(3) },
      /snapshot at 5 none behind 3/,
    ],
    ['a higher one is known', { claim: commitAt(12) }, /knows 12 of another/],
  ] as const) {
    it(`is of a journal that lost messages where ${what}`, () => claiming(known).expectLost(message))
  }

  it('is compared before it replaces what is known', async () => {
    const lossy = claiming({ claim: otherAt(7) })
    await lossy.expectLost(/commit stands at 7/)
    expect(lossy.steps).not.to.include('replace')
  })

  it('is compared again where another owner was faster', async () => {
    const slow = claiming({ claim: nameOf(6) })
    slow.beforeReplacing = () => {
      slow.claim = otherAt(7)
    }
    await slow.expectLost(/commit stands at 7/)
    expect(slow.steps).not.to.include('replace')
  })

  it('is compared with what an older owner counted until it was fenced', async () => {
    const late = claiming({ claim: nameOf(6), counted: nameOf(7) })
    late.beforeReplacing = () => {
      late.counted = otherAt(8)
    }
    await late.expectLost(/commit stands at 8/)
  })

  it('is fenced, and no loss, where the journal has a later one', async () => {
    const stale = claiming({ claim: commitAt(12) })
    stale.proofs = [
      () => {
        throw new FencedError('another claim')
      },
    ]
    await stale.begin().catch(() => {})
    expect(stale.ended).to.be.instanceOf(FencedError)
    expect(stale.claim).to.deep.equal(commitAt(12))
  })

  it('has another commit only when that stands there behind a proof, too', async () => {
    const another = claiming({ claim: nameOf(7) })
    another.others.add(7)
    await another.expectLost(/another commit stands at 7/)
    const stale = claiming({ claim: nameOf(7) })
    stale.others.add(7)
    stale.proofs = [() => stale.others.clear()]
    await stale.expectRaised()
  })

  it('waits for a server that has what it claimed behind', async () => {
    const behind = claiming({ claim: nameOf(7), lastSeq: 6 })
    const raised = behind.begin()
    await eventually(() => expect(behind.problems.join()).to.include('was behind'))
    expect(behind.claim).to.deep.equal(nameOf(7))
    behind.lastSeq = EPOCH
    behind.clock.advance(500)
    await raised
    expect(behind.claim).to.deep.equal(nameOf(EPOCH))
  })
})
