import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Connection } from '../../internal/nats/connection.ts'
import { createJournalCopies } from '../../internal/nats/log/journal-copies.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { connectTo } from './support.ts'

async function* bytesOf(texts: readonly string[]) {
  for (const text of texts) yield Buffer.from(text)
}

describe('copies of journals', () => {
  let dir: string
  let connection: Connection
  let copies: ReturnType<typeof createJournalCopies>

  before(async () => {
    dir = join(tempFolder('copies'), 'nats')
    ;({ connection } = await connectTo((await ownNats({ dir })).url))
    copies = createJournalCopies({ connection, clock: systemClock(), replicas: 1 })
  })

  after(async () => {
    copies.close()
    await connection.close()
  })

  async function loaded(shard: number): Promise<string[] | undefined> {
    const copy = await copies.load(shard)
    return copy && Array.fromAsync(copy.read(0, copy.length), (message) => Buffer.from(message).toString())
  }

  it('are what was saved last, until they are removed', async () => {
    expect(await loaded(0)).to.equal(undefined)
    await copies.save(0, bytesOf(['a', 'b']))
    expect(await loaded(0)).to.deep.equal(['a', 'b'])
    await copies.save(0, bytesOf(['c']))
    expect(await loaded(0)).to.deep.equal(['c'])
    await copies.remove(0)
    await copies.remove(0)
    expect(await loaded(0)).to.equal(undefined)
  })

  it('have nothing of an earlier copy whose files the broker did not remove', async () => {
    await copies.save(1, bytesOf(['old', 'older', 'oldest']))
    // An earlier deletion stopped half-way: the broker cannot move the files aside, and says that it deleted them.
    const aside = join(dir, 'store', 'jetstream', 'penstock', 'streams', '.REPAIR_1')
    mkdirSync(aside, { recursive: true })
    writeFileSync(join(aside, 'left'), 'over')
    await copies.save(1, bytesOf(['new']))
    expect(await loaded(1)).to.deep.equal(['new'])
  })
})
