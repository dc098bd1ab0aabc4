import { expect } from 'chai'
import { describe, it } from 'mocha'

import { pastedPage, patient, received } from './pasted-page.ts'

describe('the commands of the guide to the local instance', function () {
  this.timeout(120_000)
  const page = pastedPage('docs/guide/local.md')

  it('take a tour: four items come out as one signed batch', async () => {
    const output = await page.paste('Take a tour', (commands) =>
      patient(commands, ['"idleTimeoutMs":1000', '"idleTimeoutMs":4000'], ['sleep 2', 'sleep 8']),
    )
    expect(output.match(/"duplicate":true/g)).to.have.length(1)
    const [request, ...others] = received(output)
    expect(others).to.deep.equal([])
    expect(request?.headers).to.have.property('x-svc-signature')
    expect(request?.headers['x-idempotency-key']).to.match(/^grp:.+:v\d+$/)
    expect(request?.body.items).to.have.length(4)
  })

  it('show what came to a receiver of any name', async () => {
    const output = await page.paste('Use the local receiver')
    expect(output).to.include('"body":{"hello":"world"}')
  })

  it('let a destination fail until its buffer is disabled, and enable it again', async () => {
    const output = await page.paste('Let a destination fail')
    expect(output.match(/"reason":"max_retries_exceeded"/g)).to.have.length(3)
    expect(output).to.include('{"error":"Buffer is disabled"}')
    const { enabled, delivery } = await page.installation.api().readBuffer('shop-orders')
    expect({ enabled, url: delivery.url }).to.deep.equal({
      enabled: true,
      url: `${page.installation.service.url}/local/receiver/shop`,
    })
  })

  it('make an owner key of another customer', async () => {
    const output = await page.paste('Make another owner key')
    expect(output).to.include('"customerId":"acme","credits":100000')
  })

  it('look inside', async () => {
    const output = await page.paste('Look inside')
    expect(output).to.match(/^live/).and.include('ready')
    expect(output).to.match(/^[1-9]\d*$/m)
    expect(output).to.include(
      '"checks":{"postgres":"ok","nats":"ok","inboxes":"ok","shards":"ok","secrets":"ok"}',
    )
    expect(output.match(/ owned /g)).to.have.length(2)
    expect(output.match(/ running /g)).to.have.length(2)
  })

  it('are all run here', () => {
    expect(page.pasted).to.deep.equal([...page.sections.keys()])
  })
})
