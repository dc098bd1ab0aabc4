import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Connection } from '../../internal/nats/connection.ts'
import { standingLeases } from '../../internal/nats/leases/standing-leases.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { natsAccount } from '../support/servers.ts'
import { LASTING, members } from './lease-members.ts'
import { connectTo } from './support.ts'

describe('the leases that stand, to one who has none', () => {
  const { join, leave } = members()
  let url: string
  let connection: Connection

  beforeEach(async () => {
    url = (await natsAccount()).url
    connection = (await connectTo(url)).connection
  })
  afterEach(async () => {
    await leave()
    await connection.close()
  })

  const standing = async () => (await standingLeases(connection, systemClock())).leases

  it('are none before the first node, and asking makes no bucket', async () => {
    expect(await standing()).to.deep.equal([])
    const manager = await connection.nats.jetstreamManager()
    expect(await manager.streams.names().next()).to.deep.equal([])
  })

  it('are those of all members, as they announce them, without the released ones', async () => {
    const [one, other, gone] = [await join(url, LASTING), await join(url, LASTING), await join(url, LASTING)]
    await gone.leases.close()
    await eventually(() => one.leases.leases().length === 2)
    const seen = await standing()
    expect(seen.map(({ boot }) => boot)).to.have.members([one.boot, other.boot])
    expect(seen).to.have.deep.members(one.leases.leases())
  })

  it('stand without shards where they cannot be read', async () => {
    const one = await join(url, LASTING)
    await connection.nats.request('$KV.penstock-leases.strange', 'not JSON')
    const seen = await standing()
    expect(seen.map(({ boot }) => boot)).to.have.members([one.boot, 'strange'])
    expect(seen.find(({ boot }) => boot === 'strange')).to.deep.include({ shards: [], accepting: false })
  })

  it('come with the age of their bucket, which none has before the first node', async () => {
    const age = async () => (await standingLeases(connection, systemClock())).bucketAgeMs
    expect(await age()).to.equal(undefined)
    await join(url)
    expect(await age()).to.be.at.least(0)
  })
})
