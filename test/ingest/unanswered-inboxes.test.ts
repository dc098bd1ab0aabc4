import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { UnansweredInboxes } from '../../internal/ingest/unanswered-inboxes.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

describe('inboxes that take nothing', () => {
  let clock: ManualClock
  let inboxes: UnansweredInboxes
  const refusal = () =>
    inboxes.refuse().then(
      () => null,
      ({ message }: Error) => message,
    )
  beforeEach(() => {
    clock = new ManualClock()
    inboxes = new UnansweredInboxes(clock)
    inboxes.report(1, false)
  })

  it('are named until a pack of each is answered', async () => {
    inboxes.report(2, false)
    inboxes.report(1, true)
    expect(await refusal()).to.equal('the inbox of shard 2 takes nothing')
    inboxes.report(2, true)
    expect(await refusal()).to.equal(null)
  })

  it('are forgotten when no webhook has come for a minute', async () => {
    clock.advance(30_000)
    inboxes.report(1, false)
    clock.advance(59_999)
    expect(await refusal()).to.equal('the inbox of shard 1 takes nothing')
    clock.advance(1)
    expect(await refusal()).to.equal(null)
  })

  it('are forgotten with the next connection to the broker', async () => {
    expect(await refusal()).to.equal('the inbox of shard 1 takes nothing')
    inboxes.forget()
    expect(await refusal()).to.equal(null)
  })
})
