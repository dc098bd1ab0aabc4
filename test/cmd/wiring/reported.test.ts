/** Balances as a process reads them that pays webhooks itself. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { type LedgerOfNode, reportedAccounts, reportedCustomers } from '../../../cmd/wiring/reported.ts'
import type { CustomerStore } from '../../../internal/accounts/ports.ts'
import type { CreditAccounts } from '../../../internal/billing/ports.ts'

describe('a balance that is read beside a ledger', () => {
  let did: string[]
  beforeEach(() => {
    did = []
  })

  const ledger: LedgerOfNode = {
    credited: () => {},
    async reported(customerId) {
      await Promise.resolve()
      did.push(`reported ${customerId}`)
    },
  }
  const doing = (what: string) => async () => void did.push(what)

  it('of a customer follows what the ledger paid in advance', async () => {
    const store = { find: doing('find') } as unknown as CustomerStore
    await reportedCustomers(ledger, store).find('acme', 'shop')
    expect(did).to.deep.equal(['reported shop', 'find'])
  })

  it('of an account follows it in every call', async () => {
    const names = ['read', 'grant', 'transactions'] as const
    const accounts = Object.fromEntries(names.map((name) => [name, doing(name)])) as unknown as CreditAccounts
    const reported = reportedAccounts(ledger, accounts)
    await reported.read('acme')
    await reported.grant('acme', 5, 'a gift')
    await reported.transactions('acme', 50)
    expect(did).to.deep.equal(names.flatMap((name) => ['reported acme', name]))
    expect(Object.keys(reported)).to.have.members([...names])
  })
})
