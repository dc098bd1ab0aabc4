/** Reads of balances that first let the ledger of the same node report what it paid in advance. */
import type { CustomerStore } from '../../internal/accounts/ports.ts'
import type { CreditLedger } from '../../internal/billing/ledger.ts'
import type { CreditAccounts } from '../../internal/billing/ports.ts'

/** Of this node: told of raised balances, asked to report before one is read. */
export type LedgerOfNode = Pick<CreditLedger, 'credited' | 'reported'>

/** Of a process that takes no webhooks: it has nothing to report. */
export const noLedger: LedgerOfNode = { credited: () => {}, reported: async () => {} }

export function reportedCustomers(ledger: LedgerOfNode, customers: CustomerStore): CustomerStore {
  return {
    insert: (customer) => customers.insert(customer),
    creatorOf: (customerId) => customers.creatorOf(customerId),
    takeOver: (customerId) => customers.takeOver(customerId),
    async find(reader, customerId) {
      await ledger.reported(customerId)
      return customers.find(reader, customerId)
    },
  }
}

export function reportedAccounts(ledger: LedgerOfNode, accounts: CreditAccounts): CreditAccounts {
  return {
    async read(customerId) {
      await ledger.reported(customerId)
      return accounts.read(customerId)
    },
    async grant(customerId, credits, description) {
      await ledger.reported(customerId)
      return accounts.grant(customerId, credits, description)
    },
    async transactions(customerId, limit) {
      await ledger.reported(customerId)
      return accounts.transactions(customerId, limit)
    },
  }
}
