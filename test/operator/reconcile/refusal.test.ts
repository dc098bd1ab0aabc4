import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decide } from '../../../operator/reconcile/decide.ts'
import type { Asking } from '../../../operator/reconcile/decision.ts'
import { ORPHAN_AFTER_MS, ORPHAN_UNANSWERED_MS } from '../../../operator/reconcile/deletion.ts'
import { AdminError } from '../../../operator/reconcile/ports.ts'
import { afterRefusal, isKeyBad, outcomeOf, outOfReachOf } from '../../../operator/reconcile/refusal.ts'
import { JUST_NOW, KEY, observed, resource, SYNCED } from './fixtures.ts'

const OTHER_KEY = `svk_${'1b'.repeat(24)}`
const deleted = { deletionTimestamp: JUST_NOW }

describe('a buffer of a suspended account', () => {
  const suspended = new AdminError('suspended', 'Account is suspended')

  it('says so, and is not asked for again before the usual check', () => {
    expect(outcomeOf(suspended, false)).to.deep.equal({
      state: 'stalled',
      reason: 'AccountSuspended',
      message: 'Account is suspended',
    })
  })

  it('is not left behind when its resource is deleted: its key is not taken for bad', () => {
    expect(isKeyBad(suspended)).to.equal(false)
    const held = observed({ metadata: deleted, status: SYNCED, strandedMs: ORPHAN_AFTER_MS })
    expect(afterRefusal(held, { act: 'remove', key: KEY }, suspended)).to.equal(undefined)
  })
})

describe('a deletion that gets no answer', () => {
  const away = new AdminError('unavailable', 'away')
  const removal = { act: 'remove', key: OTHER_KEY } as const
  const gone = { metadata: deleted, status: SYNCED, secrets: [], lastKeys: [OTHER_KEY] }

  it('is repeated, but not for ever once the Secret is gone', () => {
    const early = observed({ ...gone, strandedMs: ORPHAN_UNANSWERED_MS - 1 })
    expect(afterRefusal(early, removal, away)).to.equal(undefined)
    const late = afterRefusal(observed({ ...gone, strandedMs: ORPHAN_UNANSWERED_MS }), removal, away)!
    expect(decide(late)).to.deep.equal({ act: 'release', orphaned: 'away' })
  })

  it('is repeated for ever while the Secret is there', () => {
    const held = observed({ metadata: deleted, status: SYNCED })
    expect(afterRefusal(held, { act: 'remove', key: KEY }, away)).to.equal(undefined)
  })
})

describe('a key that finds no buffer to delete', () => {
  const owned = resource({ status: SYNCED })

  for (const [title, key, outOfReach] of [
    ['of the account', { customerId: 'acme', projects: null }, undefined],
    ['limited to its project', { customerId: 'acme', projects: ['other', 'shop'] }, undefined],
    [
      'limited to other projects',
      { customerId: 'acme', projects: ['other'] },
      'the API key does not reach the project shop',
    ],
    [
      'of another account',
      { customerId: 'globex', projects: null },
      'the API key is one of the account globex, and the buffer belongs to acme',
    ],
  ] as const) {
    it(`${title} ${outOfReach ? 'says nothing about it' : 'says that it is gone'}`, () => {
      expect(outOfReachOf(owned, key)).to.equal(outOfReach)
    })
  }

  it('is believed where the status of an earlier version names no account', () => {
    const { customerId: _, ...status } = SYNCED
    expect(outOfReachOf(resource({ status }), { customerId: 'globex', projects: null })).to.equal(undefined)
  })
})

describe('a limit of the account', () => {
  it('stalls the resource whose buffer it keeps from being created, with the words of the service', () => {
    const full = new AdminError('full', 'Account has as many buffers as it may')
    const creation = { act: 'create', key: KEY } as Asking
    expect(afterRefusal(observed({}), creation, full), 'nobody else has the id').to.equal(undefined)
    expect(outcomeOf(full, true)).to.deep.equal({
      state: 'stalled',
      reason: 'LimitReached',
      message: 'Account has as many buffers as it may',
      disowned: true,
    })
  })
})
