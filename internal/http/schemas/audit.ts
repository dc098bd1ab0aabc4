import { auditActorTypes, auditEvents, auditTargets } from '../../domain/audit.ts'
import { closed, instant, integer, list, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Audit". */

const actorSchema = closed(
  'AuditActor',
  'Who did it.',
  {
    type: oneOf('What identified it.', auditActorTypes, 'AuditActorType'),
    keyId: text('Of a key.', { minLength: 1 }),
    issuer: text('Of a token: its identity provider.', { minLength: 1 }),
    subject: text('Of a token: the account there.', { minLength: 1 }),
  },
  ['keyId', 'issuer', 'subject'],
)

const TARGETS: Record<(typeof auditTargets)[number], string> = {
  customerId: 'Another customer.',
  projectId: 'A project.',
  bufferId: 'A buffer.',
  cloneId: 'The new buffer of a clone.',
  keyId: 'An API key.',
  dlqId: 'A dead letter.',
}

const targetSchema = closed(
  'AuditTarget',
  'What it was about: ids alone.',
  Object.fromEntries(auditTargets.map((name) => [name, text(TARGETS[name])])),
  auditTargets,
)

const originSchema = closed(
  'AuditOrigin',
  'From where.',
  {
    address: text('The other end of the connection: that of the last proxy, where there is one.'),
    forwardedFor: text('`X-Forwarded-For` as it came, shortened. Any caller can write anything there.'),
  },
  ['address', 'forwardedFor'],
)

const recordSchema = closed('AuditRecord', 'Something that was done, or tried.', {
  auditId: text('The record, a UUID.', { minLength: 36, maxLength: 36 }),
  customerId: text('Its customer.', { minLength: 1 }),
  createdAt: instant('When it was done'),
  event: oneOf('What kind of thing it was.', auditEvents, 'AuditEvent'),
  actor: actorSchema,
  method: orNull(text('Of the request; null: none.')),
  route: orNull(text('Path of the endpoint, or the command; null: neither.')),
  target: targetSchema,
  from: originSchema,
  status: orNull(integer('Status of the answer; null: nobody was answered.', { minimum: 100, maximum: 599 })),
  count: integer('How often it was done, or how many records are missing.', { minimum: 1 }),
})

export const auditPageSchema = closed('AuditPage', 'Who did what.', {
  records: list('Newest first.', recordSchema),
  nextCursor: orNull(text('`cursor` of the next page; null: there is none.', { minLength: 1 })),
})
