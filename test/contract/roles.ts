import type { Row } from './row.ts'

/** docs/reference/api.md, "Roles": the table of actions and roles. */

const columns = ['viewer', 'member', 'admin', 'owner'] as const

const actions: readonly [action: string, may: string, operations: readonly string[]][] = [
  [
    'Read projects, buffers, analytics, DLQ, credits, invoices, API keys',
    'yes yes yes yes',
    [
      ...['listProjects', 'readProject', 'listBuffers', 'readBuffer', 'readAnalyticsSummary'],
      ...['readAnalyticsTimeseries', 'listDeadLetters', 'readDeadLetter', 'readDeadLetterBatch'],
      ...['readCredits', 'listCreditTransactions', 'listInvoices', 'readInvoice', 'listApiKeys'],
    ],
  ],
  [
    'Create, update, delete, clone, test buffers',
    'no yes yes yes',
    ['createBuffer', 'updateBuffer', 'deleteBuffer', 'cloneBuffer', 'testBuffer'],
  ],
  ['Create, update, delete projects', 'no no yes yes', ['createProject', 'updateProject', 'deleteProject']],
  ['Create and revoke API keys', 'no no yes yes', ['createApiKey', 'revokeApiKey']],
  ['Read the audit', 'no no yes yes', ['listAuditRecords']],
  ['Retry and delete DLQ entries', 'no no yes yes', ['retryDeadLetter', 'deleteDeadLetter']],
  ['Cancel subscription immediately', 'no no yes yes', ['cancelSubscriptionNow']],
  ['Cancel subscription at end of period', 'no no no yes', ['cancelSubscription']],
  ['Create a customer', 'no no no yes', ['createCustomer']],
]

export const roleRows: readonly Row[] = actions.flatMap(([action, may, operations]) =>
  operations.flatMap((operationId) =>
    may.split(' ').map((answer, index): Row => {
      const declared = `${operationId} for ${columns[index]}: ${answer}`
      return { table: 'Authentication', row: `${action}, ${declared}`, shownBy: { declared } }
    }),
  ),
)
