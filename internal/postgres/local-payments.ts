/** The document of the local payment provider (migration 047). */

import type { LocalPaymentStore } from '../payments/local/ports.ts'
import type { Database, Queryable } from './connection.ts'

interface Row {
  document: unknown
}

/** `Document`: what the provider wrote; nobody else does. */
export function createLocalPaymentStore<Document>(db: Database): LocalPaymentStore<Document> {
  return {
    async read() {
      const [row] = await db<Row[]>`SELECT document FROM local_payments`
      return documentIn<Document>(row)
    },
    change: (change) => db.begin((transaction) => changeDocument(transaction, change)) as Promise<never>,
  }
}

/** The lock of the row puts changes one behind the other. */
async function changeDocument<Document, T>(
  db: Queryable,
  change: (document: Document | undefined) => { document: Document; result: T },
): Promise<T> {
  const [row] = await db<Row[]>`SELECT document FROM local_payments FOR UPDATE`
  const { document, result } = change(documentIn<Document>(row))
  await db`UPDATE local_payments SET document = ${JSON.stringify(document)}::text::json`
  return result
}

function documentIn<Document>(row: Row | undefined): Document | undefined {
  if (row === undefined) throw new Error('local_payments has lost its row')
  return (row.document ?? undefined) as Document | undefined
}
