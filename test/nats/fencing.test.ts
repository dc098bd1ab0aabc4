import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { AppendAnswer, Log } from '../../internal/shard/broker.ts'
import { natsAccount } from '../support/servers.ts'
import { brokerAt, type TestBroker } from './support.ts'

const TIMEOUT_MS = 10_000
const body = Buffer.from('commit')

function seqOf(answer: AppendAnswer): number {
  if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
  return answer.seq
}

/** The claim of another node: without expectation, so that it cannot starve. */
const epochRecord = async (log: Log, id: string) =>
  seqOf(await log.append(body, { msgId: id, timeoutMs: TIMEOUT_MS }))

describe('fencing by the expected last sequence', () => {
  let url: string
  let owner: TestBroker
  let successor: TestBroker

  before(async () => {
    url = (await natsAccount()).url
    owner = await brokerAt(url, 3)
    successor = await brokerAt(url, 3)
  })
  after(async () => {
    await owner.close()
    await successor.close()
  })

  it('refuses a stale writer with one commit in flight, at whatever point the claim comes', async () => {
    const stale = owner.broker.journal(0)
    const claims = successor.broker.journal(0)
    for (let point = 0; point < 10; point++) {
      let last = await epochRecord(stale, `own-claim-${point}`)
      for (let n = 0; n < point; n++) {
        last = seqOf(
          await stale.append(body, { msgId: `${point}:${n}`, expectLastSeq: last, timeoutMs: TIMEOUT_MS }),
        )
      }
      const epoch = await epochRecord(claims, `claim-${point}`)
      for (let n = 0; n < 3; n++) {
        const answer = await stale.append(body, {
          msgId: `${point}:stale-${n}`,
          expectLastSeq: last,
          timeoutMs: TIMEOUT_MS,
        })
        expect(answer, `point ${point}`).to.deep.equal({ kind: 'wrong-sequence' })
      }
      expect((await claims.last())?.seq).to.equal(epoch)
    }
  })

  it('lets either the claim or the commit win when they race, never both unseen', async () => {
    const stale = owner.broker.journal(1)
    const claims = successor.broker.journal(1)
    let last = await epochRecord(stale, 'own-claim')
    for (let round = 0; round < 200; round++) {
      const commit = stale.append(body, {
        msgId: `race-${round}`,
        expectLastSeq: last,
        timeoutMs: TIMEOUT_MS,
      })
      const claim = epochRecord(claims, `race-claim-${round}`)
      const [answer, epoch] = await Promise.all([commit, claim])
      // Stored means before the claim: the fold up to the epoch holds it.
      if (answer.kind === 'stored') expect(answer.seq).to.be.below(epoch)
      else expect(answer.kind).to.equal('wrong-sequence')
      last = epoch
    }
  })

  it('does not fence a pipeline of predicted sequences: why an owner keeps one commit in flight', async () => {
    const stale = owner.broker.journal(2)
    const claims = successor.broker.journal(2)
    const first = await epochRecord(stale, 'own-claim')
    const answers: Promise<AppendAnswer>[] = []
    let claim: Promise<number> | undefined
    for (let n = 0; n < 3_000; n++) {
      answers.push(
        stale.append(body, { msgId: `pipeline-${n}`, expectLastSeq: first + n, timeoutMs: TIMEOUT_MS }),
      )
      if (n === 1_000) {
        await answers[0]
        claim = epochRecord(claims, 'foreign-claim')
      }
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const epoch = (await claim) ?? 0
    const settled = await Promise.all(answers)
    const afterClaim = settled.filter((answer) => answer.kind === 'stored' && answer.seq > epoch)
    expect(settled.filter(({ kind }) => kind === 'wrong-sequence').length).to.be.above(0)
    // The claim itself fills the sequence that the next write but one expects.
    expect(afterClaim.length).to.be.above(0)
  })
})
