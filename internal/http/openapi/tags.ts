/** Groups of operations, by the first segment of the path that names a resource. */

const descriptions = {
  Ingest: 'Webhooks come in here.',
  Customers: 'Accounts of the installation.',
  Projects: 'Groups of buffers.',
  Buffers: 'Where webhooks are collected, and how they are delivered.',
  'API keys': 'Credentials of servers and scripts.',
  Audit: 'Who did what to the account.',
  Credits: 'Balance, what moved it, and packs to raise it.',
  Subscription: 'Plans, the subscription and its invoices.',
  'Dead letter queue': 'Batches that could not be delivered.',
  Analytics: 'Figures by UTC day.',
  Health: 'State of the service.',
} as const

type Tag = keyof typeof descriptions

const byResource: Readonly<Record<string, Tag>> = {
  ingest: 'Ingest',
  customers: 'Customers',
  whoami: 'Customers',
  projects: 'Projects',
  buffers: 'Buffers',
  'buffer-states': 'Buffers',
  'api-keys': 'API keys',
  audit: 'Audit',
  credits: 'Credits',
  'credit-packs': 'Credits',
  plans: 'Subscription',
  payments: 'Subscription',
  subscription: 'Subscription',
  invoices: 'Subscription',
  dlq: 'Dead letter queue',
  analytics: 'Analytics',
  health: 'Health',
  '': 'Health',
}

export const tags = Object.entries(descriptions).map(([name, description]) => ({ name, description }))

/** Throws for a resource that has no group yet. */
export function tagOf(path: string): Tag {
  const resource = path.split('/').find((segment) => !['', 'v1', 'admin'].includes(segment)) ?? ''
  const tag = byResource[resource]
  if (tag === undefined) throw new Error(`${path} has no tag in the OpenAPI document`)
  return tag
}
