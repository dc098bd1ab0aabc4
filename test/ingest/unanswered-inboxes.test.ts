import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { UnansweredInboxes } from '../../internal/ingest/unanswered-inboxes.ts'

describe('inboxes that take nothing', () => {
  let inboxes: UnansweredInboxes
  const refusal = () =>
    inboxes.refuse().then(
      () => null,
      ({ message }: Error) => message,
    )
  beforeEach(() => {
    inboxes = new UnansweredInboxes()
    inboxes.report(1, false)
  })

  it('are named until a pack of each is answered', async () => {
    inboxes.report(2, false)
    inboxes.report(1, true)
    expect(await refusal()).to.equal('the inbox of shard 2 takes nothing')
    inboxes.report(2, true)
    expect(await refusal()).to.equal(null)
  })

  it('are forgotten with the next connection to the broker', async () => {
    expect(await refusal()).to.equal('the inbox of shard 1 takes nothing')
    inboxes.forget()
    expect(await refusal()).to.equal(null)
  })
})
