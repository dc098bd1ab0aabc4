import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Batches } from '../../../internal/shard/batches/batches.ts'
import { SERIALIZER } from '../../../internal/shard/batches/body.ts'
import type { BatchesOwner } from '../../../internal/shard/batches/owner.ts'
import { Groups } from '../../../internal/shard/held/groups.ts'
import type { LiveItem } from '../../../internal/shard/held/live.ts'
import { MissingMessageError } from '../../../internal/shard/held/payload-cache.ts'
import { JournalClosedError } from '../../../internal/shard/journal/journal.ts'
import type { JournalRecord, SealRecord } from '../../../internal/shard/journal/records.ts'
import { FencedError } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { storedBuffer } from '../../domain/sample-buffer.ts'
import { settled } from '../../ingest/support.ts'

/** An owner that restores a batch of which a message is gone; `proof`: what its commit answers. `meanwhile`: before that is known. */
async function ownerOf(
  proof: Promise<void>,
  fault: Error = new MissingMessageError('inbox message 1 is gone'),
  meanwhile = (_: Batches) => {},
) {
  const clock = new ManualClock()
  const buffer = { ...storedBuffer(), enabled: true }
  const record = { uid: 'u', version: 1, deleted: false, suspended: false, buffer }
  const policies = { peek: () => record, load: async () => record, onChange: () => () => {} }
  const groups = new Groups({ policies, clock, onProblem: () => {} })
  const did: string[] = []
  const read = async () => {
    await settled()
    throw fault
  }
  const batches = new Batches({
    clock,
    groups,
    journal: { prove: () => proof, write: ({ type }: JournalRecord) => did.push(type) },
    replay: { replaying: false },
    deliverer: { hasRoom: () => true },
    payloads: { with: read },
    limits: { attemptsPerBuffer: 1, payloadBudget: 0 },
    fence: { shard: 0 },
    telemetry: { problem: () => {} },
    remoteAttempts: { has: () => false },
    mayAct: () => true,
    onFatal: ({ name }: Error) => did.push(name),
  } as unknown as BatchesOwner)
  const item = { seq: 1, index: 0, at: 0, bytes: 1 } as LiveItem
  const seal = { serializer: SERIALIZER, segment: 0 } as SealRecord
  const batch = { groupId: 'g', version: 7, attempt: 1, nextAt: 0, seal }
  const group = groups.open('g', 'u', true)
  batches.restore(group, batch, [item])
  batches.resume(group)
  meanwhile(batches)
  await settled()
  await settled()
  return did
}

describe('a sealed batch of which a message is gone', () => {
  it('is given up behind a commit, and not before', async () => {
    const proof = Promise.withResolvers<void>()
    const did = await ownerOf(proof.promise)
    expect(did).to.deep.equal([])
    proof.resolve()
    await settled()
    expect(did).to.deep.equal(['unseal'])
  })

  for (const fault of [new MissingMessageError('gone'), new JournalClosedError('closed')])
    it(`is left to the next owner where this one lets go meanwhile (${fault.name})`, async () => {
      expect(await ownerOf(Promise.resolve(), fault, (batches) => batches.drain())).to.deep.equal([])
    })

  it('is left to the successor of an owner that was fenced', async () => {
    const fenced = Promise.reject(new FencedError('the journal'))
    fenced.catch(() => {})
    expect(await ownerOf(fenced)).to.deep.equal(['FencedError'])
  })
})
