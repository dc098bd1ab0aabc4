import type { Role } from '../../../internal/domain/model.ts'
import { bufferBody } from '../caller.ts'
import type { Ids, Reach, World } from './world.ts'

/** What the endpoints answer to whoever has the role, by reach; each row of the route table has one rule. */
export interface Rule {
  /** The least powerful role that may (docs/reference/api.md, "Roles"). */
  least: Role
  /** Makes what is asked for, and names it. */
  target: (world: World, projectId: string, reach: Reach) => Promise<Ids>
  /** `customerId` is the caller's. Path parameters are filled from the ids. */
  query?: (ids: Ids, customerId: string) => Record<string, string>
  body?: (ids: Ids) => unknown
  /** Status by reach: own, inside, outside, foreign; null: the request can name nothing of such a kind. */
  answers: readonly [own: number, inside: number, outside: number | null, foreign: number | null]
  /** Why the answer may differ from the one to an id that names nothing, by reach. */
  tells?: Partial<Record<Reach, string>>
}

const customerOnly = (_: Ids, customerId: string) => ({ customerId })
const nothing = async (): Promise<Ids> => ({})
const freshName = async (): Promise<Ids> => ({ bufferId: `new-${crypto.randomUUID()}` })
const onSale = (world: World) => world.plan()
const subscribed = (world: World) => world.subscription()
const byBuffer = (world: World, projectId: string) => world.buffer(projectId)
const byDeadLetter = (world: World, projectId: string) => world.deadLetter(projectId)
const byProject = (world: World, projectId: string) => world.project(projectId)
const byKey = (world: World, projectId: string) => world.apiKey(projectId)

const UNIQUE =
  'ids are unique in the whole installation: 409 (docs/reference/api.md, "Customers", "Projects" and "Buffers")'
const DLQ_403 = '403 for an item of another customer (docs/reference/api.md, "Dead letters")'
const INVOICE_403 = '403 for an invoice of another customer (docs/reference/api.md, "Invoices")'

export const rules: Readonly<Record<string, Rule>> = {
  createCustomer: {
    least: 'owner',
    // Whoever has all projects makes a new one; another customer asks for one that exists.
    target: async (_, __, reach) => ({
      customerId: reach === 'foreign' ? 'acme' : `new-${crypto.randomUUID()}`,
    }),
    body: ({ customerId }) => ({ customerId, name: 'New' }),
    answers: [201, 403, null, 409],
    tells: { foreign: UNIQUE },
  },
  readCustomer: {
    least: 'viewer',
    target: async () => ({ customerId: 'acme' }),
    answers: [200, 200, null, 404],
  },
  whoAmI: { least: 'viewer', target: nothing, answers: [200, 200, null, null] },

  createProject: {
    least: 'admin',
    target: (world, projectId, reach) =>
      reach === 'own' || reach === 'inside' ? world.noProject(projectId) : world.project(projectId),
    body: ({ projectId }) => ({ projectId, name: 'New' }),
    answers: [201, 201, 403, 409],
    tells: { foreign: UNIQUE },
  },
  listProjects: { least: 'viewer', target: byProject, query: customerOnly, answers: [200, 200, 200, 200] },
  readProject: { least: 'viewer', target: byProject, answers: [200, 200, 404, 404] },
  updateProject: {
    least: 'admin',
    target: byProject,
    body: () => ({ enabled: false }),
    answers: [200, 200, 404, 404],
  },
  deleteProject: { least: 'admin', target: byProject, answers: [204, 204, 404, 404] },

  createBuffer: {
    least: 'member',
    target: async (world, projectId) => ({ ...(await world.project(projectId)), ...(await freshName()) }),
    body: ({ bufferId, projectId }) => bufferBody(bufferId!, projectId!),
    answers: [201, 201, 400, 400],
  },
  listBuffers: {
    least: 'viewer',
    target: byBuffer,
    query: ({ projectId }, customerId) => ({ projectId: projectId!, customerId }),
    answers: [200, 200, 200, 200],
  },
  readBufferStates: { least: 'viewer', target: nothing, answers: [200, 200, null, null] },
  readBuffer: { least: 'viewer', target: byBuffer, answers: [200, 200, 404, 404] },
  updateBuffer: {
    least: 'member',
    target: byBuffer,
    body: () => ({ name: 'Other' }),
    answers: [200, 200, 404, 404],
  },
  deleteBuffer: { least: 'member', target: byBuffer, answers: [204, 204, 404, 404] },
  cloneBuffer: { least: 'member', target: byBuffer, body: () => ({}), answers: [201, 201, 404, 404] },
  testBuffer: {
    least: 'member',
    target: byBuffer,
    body: () => ({ payload: {} }),
    answers: [200, 200, 404, 404],
  },

  createApiKey: {
    least: 'admin',
    target: (world, projectId) => world.fewKeys(projectId),
    body: ({ projectId }) => ({ name: 'new', role: 'viewer', projectIds: [projectId] }),
    answers: [201, 201, 403, 400],
  },
  listApiKeys: { least: 'viewer', target: byKey, query: customerOnly, answers: [200, 200, 200, 200] },
  revokeApiKey: { least: 'admin', target: byKey, answers: [204, 204, 404, 404] },

  listAuditRecords: {
    least: 'admin',
    target: nothing,
    // What a caller has asked for is in the caller's own audit: nothing of before.
    query: (_, customerId) => ({ customerId, since: String(Date.now() + 600_000) }),
    answers: [200, 403, null, 200],
  },

  readCredits: { least: 'viewer', target: nothing, query: customerOnly, answers: [200, 200, null, 200] },
  listCreditTransactions: {
    least: 'viewer',
    target: nothing,
    query: customerOnly,
    answers: [200, 403, null, 200],
  },
  addCredits: {
    least: 'admin',
    target: nothing,
    body: () => ({ amount: 1 }),
    answers: [200, 200, null, null],
  },
  listCreditPacks: { least: 'viewer', target: nothing, query: customerOnly, answers: [200, 200, null, 200] },
  readCreditPackCheckout: {
    least: 'admin',
    target: subscribed,
    query: customerOnly,
    answers: [200, 200, null, 403],
  },

  listPlans: { least: 'viewer', target: nothing, query: customerOnly, answers: [200, 200, null, 200] },
  readPlanCheckout: {
    least: 'admin',
    target: onSale,
    query: ({ planId }, customerId) => ({ planId: planId!, customerId }),
    answers: [200, 200, null, 200],
  },
  readBillingPortal: { least: 'admin', target: nothing, query: customerOnly, answers: [200, 403, null, 200] },
  readSubscription: {
    least: 'viewer',
    target: subscribed,
    query: customerOnly,
    answers: [200, 200, null, 200],
  },
  cancelSubscription: { least: 'owner', target: subscribed, answers: [200, 403, null, 404] },
  cancelSubscriptionNow: { least: 'admin', target: subscribed, answers: [204, 403, null, 404] },
  listInvoices: { least: 'viewer', target: subscribed, query: customerOnly, answers: [200, 200, null, 200] },
  readInvoice: {
    least: 'viewer',
    target: subscribed,
    query: customerOnly,
    answers: [200, 200, null, 403],
    tells: { foreign: INVOICE_403 },
  },

  listDeadLetters: {
    least: 'viewer',
    target: byDeadLetter,
    query: ({ bufferId }, customerId) => ({ bufferId: bufferId!, customerId }),
    answers: [200, 200, 404, 404],
  },
  readDeadLetter: {
    least: 'viewer',
    target: byDeadLetter,
    query: customerOnly,
    answers: [200, 200, 404, 403],
    tells: { foreign: DLQ_403 },
  },
  deleteDeadLetter: {
    least: 'admin',
    target: byDeadLetter,
    query: customerOnly,
    answers: [204, 204, 404, 403],
    tells: { foreign: DLQ_403 },
  },
  readDeadLetterBatch: {
    least: 'viewer',
    target: byDeadLetter,
    answers: [200, 200, 404, 403],
    tells: { foreign: DLQ_403 },
  },
  retryDeadLetter: {
    least: 'admin',
    target: byDeadLetter,
    body: () => ({}),
    answers: [502, 502, 404, 403],
    tells: { foreign: DLQ_403 },
  },

  readAnalyticsSummary: {
    least: 'viewer',
    target: nothing,
    query: customerOnly,
    answers: [200, 200, null, 200],
  },
  readAnalyticsTimeseries: {
    least: 'viewer',
    target: byBuffer,
    query: ({ projectId, bufferId }, customerId) => ({
      projectId: projectId!,
      bufferId: bufferId!,
      customerId,
    }),
    answers: [200, 200, 200, 200],
  },
}
