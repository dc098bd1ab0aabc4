/** What becomes of a batch whose body has to be read while its owner lets go. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Sealer, type SealerOptions } from '../../../internal/shard/batches/sealer.ts'
import { MissingMessageError } from '../../../internal/shard/held/payload-cache.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'

describe('a batch whose body has to be read', () => {
  /** What the journal is asked for once the body `comes`. `wanted`: whether the batch is still to be sealed then. */
  async function asked(comes: () => Promise<object>, wanted: boolean): Promise<string[]> {
    const asked: string[] = []
    const options = {
      payloads: { with: comes },
      journal: { write: ({ type }: JournalRecord) => asked.push(type) },
    }
    const sealer = new Sealer(options as unknown as SealerOptions)
    const group = { id: 'g', buffer: { uid: 'u', record: { buffer: {} } } }
    const batch = { items: [], segment: 0, reason: 'idle' }
    const events = { wanted: () => wanted, sealed: () => {} }
    const [one, other] = [group, batch] as unknown as Parameters<Sealer['seal']>
    await sealer.seal(one, other, events).catch(({ name }: Error) => asked.push(name))
    return asked
  }
  const missing = () => Promise.reject(new MissingMessageError('gone'))

  it('is sealed when the body is there', async () => {
    expect(await asked(async () => ({}), true)).to.deep.equal(['seal'])
  })

  it('is not sealed when its owner lets go meanwhile: a release is the last record', async () => {
    expect(await asked(async () => ({}), false)).to.deep.equal([])
  })

  it('fails when the body is missing', async () => {
    expect(await asked(missing, true)).to.deep.equal(['MissingMessageError'])
  })

  it('fails no more when its owner lets go meanwhile', async () => {
    expect(await asked(missing, false)).to.deep.equal([])
  })
})
