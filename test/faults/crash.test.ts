/** The short part of the crash suite; `main.ts` runs the same for longer. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { crashRun } from './crash.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 23)

describe(`a service killed at random under load (seed ${SEED})`, function () {
  this.timeout(120_000)

  it('keeps its promises with embedded servers that are left behind', async () => {
    const { kills, accepted, dead } = await crashRun({
      ...{ seed: SEED, servers: 'embedded', kills: 3, items: 600 },
    })
    expect(kills).to.be.at.least(3)
    expect([accepted >= 600, dead > 0]).to.deep.equal([true, true])
  })

  it('keeps them when it is killed at any message to its broker', async () => {
    const { kills, accepted, groups } = await crashRun({
      ...{ seed: SEED, servers: 'own', kills: 5, items: 1_000 },
    })
    expect(kills).to.be.at.least(5)
    expect(accepted).to.be.at.least(1_000)
    expect(groups).to.be.above(100)
  })
})
