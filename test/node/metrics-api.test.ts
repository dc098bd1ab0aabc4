import { expect } from 'chai'
import { describe, it } from 'mocha'
import { taken } from './metrics-api.ts'

const KEY = 'shop/p-0/ingress'
const page = (seconds: number, at: number) =>
  `# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="ingress",namespace="shop",pod="p-0"} ${seconds} ${at}
container_memory_working_set_bytes{container="ingress",namespace="shop",pod="p-0"} 1e+06 ${at}
`

describe('what is kept of the pages of a kubelet', () => {
  it('is one sample at first, by which nothing can be told', () => {
    expect(taken(new Map(), page(1.5, 10_000)).get(KEY)).to.deep.equal({ last: { seconds: 1.5, at: 10_000 } })
  })

  it('is two samples that are far enough apart', () => {
    const first = taken(new Map(), page(1.5, 10_000))
    expect(taken(first, page(1.6, 12_000)).get(KEY)).to.deep.equal(first.get(KEY))
    expect(taken(first, page(2.5, 20_000)).get(KEY)).to.deep.equal({
      before: { seconds: 1.5, at: 10_000 },
      last: { seconds: 2.5, at: 20_000 },
    })
  })

  it('forgets containers that are gone', () => {
    expect(taken(taken(new Map(), page(1.5, 10_000)), '').size).to.equal(0)
  })
})
