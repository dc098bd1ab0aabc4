import type { Row } from './row.ts'

/** docs/reference/api.md: every endpoint, and every outcome that it lists. */

/** `text`: part of the `error`; `@code`: its code. */
type Outcome = readonly [status: number, text?: string]

const outcomes: Readonly<Record<string, readonly Outcome[]>> = {
  ingest: [
    [202],
    [400, 'Could not extract group key from request'],
    [400, 'Buffer is disabled'],
    [400, 'Buffer does not belong to this project'],
    [401, 'Missing signature header'],
    [401, 'Invalid signature'],
    [401, 'Time stamp of the signature is too far from now'],
    [401, 'This buffer takes only webhooks with an API key'],
    [401, 'Unauthorized'],
    [403, 'API key does not have access to this buffer'],
    [403, '@account_suspended'],
    [404, 'Buffer not found'],
    [429, 'Insufficient credits'],
    [500],
  ],
  createCustomer: [[201], [400, 'customerId is required'], [400, 'name is required'], [409]],
  readCustomer: [[200], [404]],
  whoAmI: [[200]],
  createProject: [
    [201],
    [400, 'projectId is required'],
    [400, 'name is required'],
    [403, 'customerId differs from the authenticated customer'],
    [409],
  ],
  listProjects: [[200], [400, 'customerId is required']],
  readProject: [[200], [404]],
  updateProject: [[200], [404]],
  deleteProject: [[204], [400, 'Project still has buffers'], [404]],
  createBuffer: [
    [201],
    [400, 'bufferId is required'],
    [400, 'projectId is required'],
    [400, 'name is required'],
    [400, 'Project not found'],
    [400, 'must be an integer from 1 to 10'],
    [403, 'customerId differs from the authenticated customer'],
    [409],
  ],
  listBuffers: [[200], [400, 'customerId is required']],
  readBuffer: [[200], [404]],
  readBufferStates: [[200], [400]],
  updateBuffer: [[200], [404]],
  deleteBuffer: [[204], [404]],
  cloneBuffer: [[201], [404]],
  testBuffer: [[200], [400, 'payload is required'], [404]],
  readAnalyticsSummary: [[200], [400, 'customerId is required']],
  readAnalyticsTimeseries: [[200], [400, 'customerId is required']],
  listDeadLetters: [[200], [400, 'customerId is required'], [404, 'Buffer not found']],
  readDeadLetter: [[200], [400, 'customerId is required'], [403], [404]],
  deleteDeadLetter: [[204], [400, 'customerId is required'], [403], [404]],
  readDeadLetterBatch: [[200], [403], [404], [409, '@payload_unavailable']],
  retryDeadLetter: [
    [200],
    [403],
    [404, 'DLQ item not found'],
    [404, 'Buffer not found'],
    [409, '@retry_in_progress'],
    [409, '@payload_unavailable'],
    [502, '@delivery_failed'],
  ],
  createApiKey: [[201], [400], [403, 'role must not be higher'], [409, '10 active API keys']],
  listApiKeys: [[200]],
  revokeApiKey: [[204], [404], [409, 'already revoked']],
  listAuditRecords: [[200], [400, 'cursor must be the nextCursor of a page'], [403, 'project-scoped']],
  listCreditPacks: [[200], [400, '@unsupported_currency']],
  readCreditPackCheckout: [[200], [403, '@subscription_required'], [404], [409], [503, 'not configured']],
  readCredits: [[200]],
  addCredits: [[200], [400, 'amount must be an integer from 1 to 100000'], [404]],
  listCreditTransactions: [[200], [403, 'project-scoped']],
  listPlans: [[200]],
  readSubscription: [[200]],
  cancelSubscription: [
    [200],
    [404],
    [409, 'already being cancelled'],
    [409, 'already cancelled'],
    [503, 'not configured'],
  ],
  cancelSubscriptionNow: [[204], [404], [409, 'already cancelled'], [503, 'not configured']],
  listInvoices: [[200]],
  readInvoice: [[200], [403], [404]],
  readPlanCheckout: [
    [200],
    [400, 'planId is required'],
    [400, 'Plan is not active'],
    [404, 'Plan not found'],
    [404, 'no checkout URL'],
    [409, 'already has a subscription'],
    [503, 'not configured'],
  ],
  readBillingPortal: [[200], [403], [404, 'bought nothing'], [503, 'not configured']],
  receiveNotification: [[200], [400, 'not valid'], [404], [413], [503, 'tell it again']],
  readHealth: [[200]],
  readEntry: [[200]],
}

const others: readonly Row[] = [
  {
    table: 'Endpoints',
    row: 'ingest: a body that is no JSON gives an HTML Bad Request page',
    shownBy: { tests: ['bodies that are no JSON answers half an object with the HTML page'] },
  },
  {
    table: 'Endpoints',
    row: 'ingest: a duplicate answers 202 with duplicate: true and consumes no credits',
    shownBy: { tests: ['a message id that arrives 100 times at once is one item and one charge'] },
  },
  {
    table: 'Endpoints',
    row: 'ingest: 404 customer not found',
    shownBy: { never: 'customers are never removed, and no buffer is without one' },
  },
  {
    table: 'Endpoints',
    row: 'createProject: 400 customer not found',
    shownBy: { never: 'only the authenticated customer can be named, and that one is there' },
  },
  {
    table: 'Endpoints',
    row: 'cloneBuffer: 400 clone failed',
    shownBy: { tests: ['clones of buffers are refused with 400 when every id is taken'] },
  },
  {
    table: 'Endpoints',
    row: 'readSubscription: null when there is none',
    shownBy: { tests: ['the subscription of a customer as it is read is null with its plan'] },
  },
  {
    table: 'Endpoints',
    row: 'retry: one attempt with a timeout of 10 s',
    shownBy: { tests: ['a manual retry against a destination that hangs ends after 10 s'] },
  },
  {
    table: 'Endpoints',
    row: 'retry: same body and key, to the current configuration',
    shownBy: {
      tests: ['a manual retry sends the same bytes under the same key as the buffer is configured now'],
    },
  },
]

export const endpointRows: readonly Row[] = [
  ...Object.entries(outcomes).flatMap(([operationId, some]) =>
    some.map(([status, text]): Row => {
      const means = text?.startsWith('@')
        ? { code: text.slice(1) }
        : { ...(text !== undefined && { error: text }) }
      const row = [`${operationId}: ${status}`, ...(text === undefined ? [] : [text])].join(' ')
      return { table: 'Endpoints', row, shownBy: { operationId, status, ...means } }
    }),
  ),
  ...others,
]
