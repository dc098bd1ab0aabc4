/**
 * Two nodes that both believe to own a shard (fault matrix, row 10): services that ask nobody's leases. One is frozen with
 * its seal on the way, the other claims and delivers, the first goes on.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import { type Service, startService, untilHealthy } from '../support/service.ts'
import { tempFolder } from '../support/temp-folders.ts'
import type { Fault } from './history.ts'
import { committing } from './strikes.ts'
import { Trial, within } from './trial.ts'

const SEED = 31
const PROGRAM = 'test/faults/keeping-service.ts'

describe('two services that both claim every shard', function () {
  this.timeout(120_000)
  let trial: Trial
  let fault: Fault
  let rival: Service | undefined
  /** Boot of who sealed. */
  let winner: string

  before(async () => {
    trial = await Trial.open({ label: 'two-owners', seed: SEED, servers: 'own', program: PROGRAM })
    await trial.createBuffer('contested')
  })
  after(async () => {
    trial?.installation.service.child.kill('SIGCONT')
    rival?.child.kill('SIGKILL')
    await trial?.close()
  })

  const deliveries = () => trial.history.deliveries.filter(({ bufferId }) => bufferId === 'contested')

  async function startRival(): Promise<Service> {
    const started = await startService({
      dataDir: tempFolder('rival'),
      program: PROGRAM,
      env: {
        PENSTOCK_NATS_URL: trial.own!.nats.url,
        PENSTOCK_DATABASE_URL: trial.own!.databaseUrl,
        PENSTOCK_SHARDS: '2',
        PENSTOCK_OWNER_KEYS: `rival=svk_${'0'.repeat(48)}`,
        PENSTOCK_INITIAL_CREDITS: '0',
        PENSTOCK_LOG_LEVEL: 'info',
      },
    })
    await untilHealthy(started)
    return started
  }

  async function commitsOf(type: string) {
    let found: { shard: number; boot: string; epoch: number }[] = []
    await trial.readLogs(async (logs) => {
      found = (await logs.commits()).filter(({ records }) => records.includes(type))
    })
    return found
  }

  it('freezes one with its seal on the way', async () => {
    const { child } = trial.installation.service
    const struck = trial.own!.proxy.strikeAt('before', committing('seal'), () => {
      fault = trial.beginFault('kill')
      child.kill('SIGSTOP')
    })
    const item = await trial.sender.send({ bufferId: 'contested', groupKey: 'ok' })
    expect(item?.answer?.status).to.equal(202)
    await within(struck, 20_000, 'nothing was sealed')
    expect(await commitsOf('seal')).to.deep.equal([])
  })

  it('the other seals and delivers, and its seal is the only one', async () => {
    rival = await startRival()
    await eventually(async () => expect(await commitsOf('done')).to.have.length(1), { timeoutMs: 30_000 })
    expect(deliveries()).to.have.length(1)
    const [seal, ...more] = await commitsOf('seal')
    expect(more).to.deep.equal([])
    const claims = (await commitsOf('epoch')).filter(({ shard }) => shard === seal!.shard)
    winner = seal!.boot
    expect(winner).to.equal(claims.at(-1)!.boot).and.not.equal(claims[0]!.boot)
  })

  it('the first one’s seal is refused when it goes on, and it stops the shard', async () => {
    const { service } = trial.installation
    service.child.kill('SIGCONT')
    const fenced = () => service.events.filter(({ what }) => what === 'the shard was fenced')
    await eventually(() => expect(fenced()).to.have.length.above(0), { timeoutMs: 30_000 })
    rival!.child.kill('SIGKILL')
    await rival!.exited()
    const frozen = (await commitsOf('seal')).filter(({ boot }) => boot !== winner)
    expect(frozen, 'sealed by who was frozen').to.deep.equal([])
    fault.to = Date.now()
    expect(deliveries()).to.have.length(1)
  })

  it('and the whole history holds, with what came afterwards', async () => {
    for (let n = 0; n < 10; n++) {
      await eventually(async () => {
        const item = await trial.sender.send({ bufferId: 'contested', groupKey: `ok-${n}` })
        return item?.answer?.status === 202
      })
    }
    await trial.judge()
  })
})
