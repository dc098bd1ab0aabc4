/**
 * Whether a cut of power is one, and one cut under load (`npm run test:power` makes many, of every kind). With CI set
 * missing tools are an error, else the suite is skipped by name.
 */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'

import { checkPowerIsCut } from './control.ts'
import { findGuest, type Guest } from './guest.ts'
import { powerRun } from './power-run.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 23)

describe(`a server that loses its power (seed ${SEED})`, function () {
  // A machine is emulated: some seconds a start, and many where others want the processors.
  this.timeout(900_000)
  let guest: Guest

  before(async function () {
    try {
      guest = await findGuest({ fetch: Boolean(process.env.CI) })
    } catch (error) {
      if (process.env.CI) throw error
      process.stderr.write(`\n*** SKIPPED: power cuts: ${(error as Error).message} ***\n\n`)
      this.skip()
    }
  })

  it('loses what no sync made sure of, and nothing else', async () => {
    const { whole, torn } = await checkPowerIsCut(guest, SEED)
    expect(whole).to.include({ synced: true, unsynced: false, direct: 1 })
    expect(torn).to.include({ synced: true, unsynced: false })
    expect(torn.direct).to.be.below(1)
  })

  it('keeps every promise with sync `always` when its unflushed writes are torn', async () => {
    const { cuts, accepted, lost } = await powerRun({ seed: SEED, kind: 'always-torn', cuts: 1, guest })
    expect({ cuts, lost }).to.deep.equal({ cuts: 1, lost: 0 })
    expect(accepted).to.be.at.least(40)
  })
})
