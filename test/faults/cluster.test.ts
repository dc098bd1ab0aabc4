/** A short seeded run of the cluster fault suite; `npm run test:faults` runs it for longer, and the rows of the matrix. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { clusterRun } from './cluster-run.ts'
import { faultsOf, KINDS, LEAST_FAULTS, planOf } from './plan.ts'

const SEED = Number(process.env.FAULTS_SEED ?? 23)
/** What is over soon; standing still past a lease takes its time. */
const QUICK = [
  'kill',
  'nats-reset',
  'nats-latency',
  'postgres-reset',
  'destination-reset',
  'broker-kill',
] as const

describe('the plan of a fault run', () => {
  const cast = { places: ['ingress-1', 'actor-1'], brokers: ['nats'], proxied: true, steps: 300 }

  it('follows from the seed, and another seed gives another', () => {
    expect(planOf(1, cast)).to.deep.equal(planOf(1, cast))
    expect(planOf(1, cast)).not.to.deep.equal(planOf(2, cast))
  })

  it('has every kind of fault, never two on one target at once, none longer than three leases', () => {
    const steps = planOf(SEED, cast)
    const acts = steps.flatMap((step) => step.acts)
    expect(new Set(acts.map(({ kind }) => kind))).to.deep.equal(new Set(KINDS))
    expect(steps.some((step) => step.acts.length === 2)).to.equal(true)
    for (const { acts } of steps.filter(({ acts }) => acts.some(({ kind }) => kind === 'restart-actors')))
      expect(acts).to.have.length(1)
    for (const { acts } of steps)
      expect(new Set(acts.map(({ target }) => target)).size, JSON.stringify(acts)).to.equal(acts.length)
    expect(Math.max(...acts.map(({ holdMs }) => holdMs))).to.be.at.most(15_000)
  })

  it('has three faults at least, whatever its steps are', () => {
    for (let seed = 0; seed < 300; seed++) {
      const steps = planOf(seed, { ...cast, steps: 1 })
      expect(faultsOf(steps), `seed ${seed}`).to.be.at.least(LEAST_FAULTS)
      expect(steps.length).to.be.below(12)
    }
    expect(planOf(1, { ...cast, steps: 2, kinds: ['restart'] })).to.have.length(2)
  })

  it('touches no network to a broker that is reached without proxies', () => {
    const acts = planOf(SEED, { ...cast, proxied: false }).flatMap((step) => step.acts)
    expect(acts.filter(({ kind }) => kind.startsWith('nats-'))).to.deep.equal([])
  })
})

describe(`a cluster of processes under faults (seed ${SEED})`, function () {
  this.timeout(240_000)

  it('keeps its promises', async () => {
    const { accepted, faults } = await clusterRun({
      seed: SEED,
      steps: 3,
      items: 800,
      kinds: QUICK,
      actors: 2,
      shards: 4,
    })
    expect([faults.length, accepted >= 800]).to.deep.equal([3, true])
  })
})
