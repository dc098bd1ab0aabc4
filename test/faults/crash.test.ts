/** Twenty kills and five thousand items in all; `main.ts` runs the same for longer and for other seeds. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { crashRun } from './crash.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 23)

describe(`a service killed at random under load (seed ${SEED})`, function () {
  this.timeout(480_000)

  it('keeps its promises with embedded servers that are left behind', async () => {
    const { kills, accepted, dead } = await crashRun({
      seed: SEED,
      servers: 'embedded',
      kills: 8,
      items: 2_000,
    })
    expect(kills).to.be.at.least(8)
    expect([accepted >= 2_000, dead > 0]).to.deep.equal([true, true])
  })

  it('keeps them when it is killed at any message to its broker', async () => {
    const { kills, accepted, groups } = await crashRun({
      seed: SEED,
      servers: 'own',
      kills: 12,
      items: 3_000,
    })
    expect(kills).to.be.at.least(12)
    expect(accepted).to.be.at.least(3_000)
    expect(groups).to.be.above(100)
  })
})
