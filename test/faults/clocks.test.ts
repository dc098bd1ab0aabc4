/** An ingress whose clock is an hour off (fault matrix, row 22): batches go out on time, by the broker's timestamps. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'

const HOUR_MS = 3_600_000
const LATE_MS = 600_000

/** A process with it takes its time of day to be so many ms ahead; its monotonic clock is right. */
function shiftedClock(ms: number): Record<string, string> {
  const code = `const now = Date.now; Date.now = () => now() + ${ms}`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

describe('an ingress whose clock is an hour off', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let sink: Sink
  let projectId: string
  let gates: { ahead: ClusterNode; behind: ClusterNode }

  before(async () => {
    sink = await startSink()
    cluster = await Cluster.create()
    const [admin, ahead, behind] = await Promise.all([
      cluster.start('admin'),
      cluster.start('ingress', shiftedClock(HOUR_MS)),
      cluster.start('ingress', shiftedClock(-HOUR_MS)),
      cluster.start('actor'),
    ])
    gates = { ahead, behind }
    const adminApi = cluster.api(admin)
    projectId = await adminApi.createProject()
    for (const [bufferId, idleTimeoutMs] of [
      ['soon', 200],
      ['patient', LATE_MS],
    ] as const) {
      await adminApi.createBuffer(projectId, bufferId, {
        batch: { maxItems: 3, idleTimeoutMs, maxWaitFromFirstMs: LATE_MS },
        delivery: { url: sink.url(`/${bufferId}`) },
      })
    }
  })
  after(async () => {
    await cluster?.stop()
    await sink?.close()
  })

  const send = async (gate: ClusterNode, bufferId: string, group: string) => {
    const answer = await cluster.api(gate).ingest(projectId, bufferId, { group })
    expect(answer.status, answer.text).to.equal(202)
  }

  const batches = (bufferId: string) =>
    sink
      .requests(`/${bufferId}`)
      .map((request) => request.json() as { svc: { groupKey: string }; items: { receivedAt: number }[] })

  for (const [name, ms] of [
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ] as const) {
    it(`${name}: its items are due when others would be, though their receivedAt says otherwise`, async () => {
      const gate = gates[name]
      await send(gate, 'patient', name)
      await send(gate, 'patient', name)
      await send(gate, 'soon', name)
      const due = await eventually(() => batches('soon').find(({ svc }) => svc.groupKey === name) ?? false, {
        timeoutMs: 20_000,
      })
      expect(due.items[0]!.receivedAt - Date.now()).to.be.within(ms - 60_000, ms + 60_000)
      expect(
        batches('patient').filter(({ svc }) => svc.groupKey === name),
        'not due yet',
      ).to.deep.equal([])
      await send(gate, 'patient', name)
      await eventually(() =>
        expect(batches('patient').filter(({ svc }) => svc.groupKey === name)).to.have.length(1),
      )
    })
  }
})
