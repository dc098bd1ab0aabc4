import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { LeaderElection } from '../../../operator/kubernetes/leader-election.ts'
import { LEASE_MS, type Lease, RENEW_DEADLINE_MS } from '../../../operator/kubernetes/lease.ts'
import { type Kube, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { eventually } from '../../support/eventually.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { apiPort, apiServer } from './cluster.ts'

const SLOW = { timeoutMs: 90_000 }

describe('the leader election on a real API server', function () {
  this.timeout(180_000)

  let kube: Kube
  let api: ApiServer
  let space: string
  const electors: Elector[] = []

  before(async function () {
    kube = await kubeOrSkip(this)
    api = apiServer(kube)
  })

  beforeEach(async () => {
    space = await namespace(kube, 'election')
  })

  afterEach(async () => {
    await Promise.all(electors.splice(0).map((elector) => elector.end()))
  })

  after(() => api?.close())

  it('lets another lead when the leader is killed, and not before its lease has run out', async () => {
    const first = elector('first')
    await first.says('leading')
    const second = elector('second')
    await second.says('standing')
    const renewed = (await lease()).spec!.renewTime!
    await eventually(async () => (await lease()).spec!.renewTime !== renewed, SLOW)
    first.child.kill('SIGKILL')
    const lastRenewal = Date.parse((await lease()).spec!.renewTime!)
    await second.says('leading')
    const { holderIdentity, acquireTime, leaseTransitions } = (await lease()).spec!
    expect([holderIdentity, leaseTransitions]).to.deep.equal(['second', 1])
    // Both times are of one machine; the record was seen first after it was written.
    expect(Date.parse(acquireTime!) - lastRenewal).to.be.at.least(LEASE_MS)
  })

  it('gives the lease back on SIGTERM', async () => {
    const first = elector('first')
    await first.says('leading')
    first.child.kill('SIGTERM')
    expect(await first.exit).to.equal(0)
    expect((await lease()).spec!.holderIdentity ?? '').to.equal('')
    const second = elector('second')
    await second.says('leading')
    expect((await lease()).spec!.leaseTransitions).to.equal(1)
  })

  it('ends a leader that was frozen for longer than its lease, and the other leads', async () => {
    const first = elector('first')
    await first.says('leading')
    const second = elector('second')
    first.child.kill('SIGSTOP')
    await second.says('leading')
    first.child.kill('SIGCONT')
    expect(await first.exit).to.equal(1)
    expect(first.said.at(-1)).to.match(/^lost: /)
    expect((await lease()).spec!.holderIdentity).to.equal('second')
  })

  it('ends a leader that cannot reach the API server for the renew deadline', async () => {
    const proxy = await TcpProxy.to(apiPort(kube))
    const cut = apiServer(kube, {}, proxy)
    const lost = Promise.withResolvers<Error>()
    const leading = Promise.withResolvers<void>()
    const election = standing(cut)
    try {
      election.run(leading.resolve, lost.resolve)
      await leading.promise
      expect(election.leading).to.equal(true)
      proxy.blackhole()
      expect((await lost.promise).message).to.equal('the lease was not renewed in time')
      expect(election.leading).to.equal(false)
    } finally {
      await election.stop()
      await cut.close()
      await proxy.close()
    }
  })

  it('ends a leader whose machine was suspended for the renew deadline, before it acts again', async () => {
    let suspendedMs = 0
    const clock = { ...systemClock(), now: () => Date.now() + suspendedMs }
    const lost = Promise.withResolvers<Error>()
    const leading = Promise.withResolvers<void>()
    const election = standing(api, clock)
    election.run(leading.resolve, lost.resolve)
    await leading.promise
    suspendedMs = RENEW_DEADLINE_MS
    expect(election.leading).to.equal(false)
    expect((await lost.promise).message).to.equal('the lease was not renewed in time')
    await election.stop()
  })

  it('has one leader of five that stand at once', async () => {
    const five = ['a', 'b', 'c', 'd', 'e'].map(elector)
    await Promise.all(five.map((each) => each.says('standing')))
    await eventually(() => five.some(({ said }) => said.includes('leading')), SLOW)
    const renewed = (await lease()).spec!.renewTime!
    // Two renewals on, everybody has tried.
    await eventually(
      async () => Date.parse((await lease()).spec!.renewTime!) - Date.parse(renewed) > 5_000,
      SLOW,
    )
    expect(five.filter(({ said }) => said.includes('leading'))).to.have.length(1)
    expect((await lease()).spec!.leaseTransitions ?? 0).to.equal(0)
  })

  it('leads on when somebody else writes to its lease, or deletes it', async () => {
    const leading = Promise.withResolvers<void>()
    let lost: Error | undefined
    const election = standing(api)
    election.run(leading.resolve, (error) => {
      lost = error
    })
    await leading.promise
    const path = `/apis/coordination.k8s.io/v1/namespaces/${space}/leases/penstock-operator`
    await api.request('PATCH', path, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations: { touched: 'yes' } } },
    })
    const touched = await lease()
    await eventually(async () => (await lease()).spec!.renewTime !== touched.spec!.renewTime, SLOW)
    await api.request('DELETE', path)
    await eventually(async () => (await lease()).spec!.holderIdentity === 'own', SLOW)
    expect([lost, election.leading]).to.deep.equal([undefined, true])
    await election.stop()
    expect((await lease()).spec!.holderIdentity ?? '').to.equal('')
  })

  function lease(): Promise<Lease> {
    return api.request('GET', `/apis/coordination.k8s.io/v1/namespaces/${space}/leases/penstock-operator`)
  }

  function standing(through: ApiServer, clock: Clock = systemClock()): LeaderElection {
    return new LeaderElection({
      api: through,
      namespace: space,
      name: 'penstock-operator',
      identity: 'own',
      clock,
      randomness: systemRandomness(),
      log: { info: () => {}, warn: () => {} },
    })
  }

  function elector(identity: string): Elector {
    const made = new Elector(kube, space, identity)
    electors.push(made)
    return made
  }
})

class Elector {
  readonly child: ChildProcess
  readonly said: string[] = []
  readonly exit: Promise<number | null>

  constructor(kube: Kube, space: string, identity: string) {
    const program = join(import.meta.dirname, 'elector.ts')
    this.child = spawn(process.execPath, [program, kube.kubeconfig, space, identity], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.exit = once(this.child, 'exit').then(([code]) => code as number | null)
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.said.push(...text.split('\n').filter((line) => line !== ''))
    })
  }

  async says(line: string): Promise<void> {
    await eventually(() => this.said.includes(line), SLOW)
  }

  async end(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.exit
  }
}
