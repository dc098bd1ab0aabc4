import { expect } from 'chai'
import { describe, it } from 'mocha'
import { operatorMetrics } from '../../../operator/controller/metrics.ts'
import { recorder } from '../../telemetry/recorder.ts'

describe('the metrics of the operator', () => {
  it('count passes by result, failures, and how long both took', async () => {
    const { meter, numbers } = recorder()
    const { controller, reflector } = operatorMetrics(meter, sources())
    expect(await numbers()).to.include({ penstock_operator_reconcile_errors: 0 })
    controller.pass({ result: 'success', durationMs: 30, waitedMs: 1 })
    controller.pass({ result: 'error', durationMs: 12, waitedMs: 4 })
    reflector.listed({ collection: 'buffers', objects: 7 })
    reflector.failed({ collection: 'secrets' })
    expect(await numbers()).to.include({
      'penstock_operator_reconciles{result=success}': 1,
      'penstock_operator_reconciles{result=error}': 1,
      penstock_operator_reconcile_errors: 1,
      'penstock_operator_reconcile_duration.sum': 42,
      'penstock_operator_queue_wait.count': 2,
      'penstock_operator_lists{collection=buffers}': 1,
      'penstock_operator_watch_failures{collection=secrets}': 1,
    })
  })

  it('read queue, lead and silence when they are asked for', async () => {
    const { meter, numbers } = recorder()
    let leading = false
    operatorMetrics(meter, { ...sources(), leading: () => leading })
    const first = await numbers()
    leading = true
    expect([first, await numbers()].map((of) => of.penstock_operator_leading)).to.deep.equal([0, 1])
    expect(first).to.include({
      penstock_operator_queue_depth: 3,
      penstock_operator_failing_resources: 2,
      'penstock_operator_watch_silence_seconds{collection=buffers}': 1.5,
    })
  })
})

function sources() {
  return {
    depth: () => 3,
    failing: () => 2,
    leading: () => false,
    silence: (): [string, number][] => [['buffers', 1.5]],
  }
}
