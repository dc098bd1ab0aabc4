/**
 * Accounts of the identity provider and their customers (docs/architecture/protocol.md, "Accounts"): one SQL
 * operation a function.
 */

import type { NewCustomer, SignUpStore } from '../accounts/ports.ts'
import type { Account, AccountHolder, IdentityRows } from '../auth/ports.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database } from './connection.ts'
import { insertCustomer } from './customers.ts'

export function createSignUpStore(db: Database): SignUpStore {
  return refusingWhenAway<SignUpStore>({
    ensure: (account, customer) => ensureCustomer(db, account, customer),
  })
}

export function createIdentityRows(db: Database): IdentityRows {
  return refusingWhenAway<IdentityRows>({
    customersOf: (accounts) => customersOf(db, accounts),
  })
}

function ensureCustomer(db: Database, account: Account, customer: NewCustomer): Promise<string> {
  return db.begin(async (transaction) => {
    // Who comes second waits here for the first one's end. The update changes nothing: it only answers the row.
    const [row] = await transaction<{ customer_id: string }[]>`
      INSERT INTO identities (issuer, subject, customer_id)
      VALUES (${account.issuer}, ${account.subject}, ${customer.customerId})
      ON CONFLICT (issuer, subject) DO UPDATE SET issuer = excluded.issuer
      RETURNING customer_id`
    if (row === undefined) throw new Error('an upsert answered no row')
    if (row.customer_id !== customer.customerId) return row.customer_id
    if ((await insertCustomer(transaction, customer)) === undefined) {
      throw new Error(`the new id ${customer.customerId} is taken`)
    }
    return customer.customerId
  })
}

async function customersOf(db: Database, accounts: readonly Account[]): Promise<(Account & AccountHolder)[]> {
  const issuers = accounts.map(({ issuer }) => issuer)
  const subjects = accounts.map(({ subject }) => subject)
  return await db<(Account & AccountHolder)[]>`
    SELECT issuer, subject, customer_id AS "customerId", is_suspended(customer_id) AS suspended FROM identities
    WHERE (issuer, subject) IN (SELECT * FROM unnest(${issuers}::text[], ${subjects}::text[]))`
}
