/** `status` of the resource: what the operator tells, readable by `kubectl wait` and other tools of the usual kind. */
import { listByKey, object, type StructuralSchema } from './structural.ts'

const generation = (description: string): StructuralSchema => ({
  type: 'integer',
  format: 'int64',
  description,
  minimum: 0,
})

const text = (description: string, maxLength: number): StructuralSchema => ({
  type: 'string',
  description,
  maxLength,
})

const time = (description: string): StructuralSchema => ({ type: 'string', format: 'date-time', description })

/** The fields, bounds and patterns of Kubernetes' own Condition. */
const condition = object('One aspect of the state of the buffer.', {
  type: {
    type: 'string',
    description: 'Ready is always there; Reconciling, Stalled and Paused only while they are true.',
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
  },
  status: {
    type: 'string',
    description: 'Whether the condition holds.',
    enum: ['True', 'False', 'Unknown'],
  },
  observedGeneration: generation('The metadata.generation that the condition speaks of.'),
  lastTransitionTime: time('When the status of the condition last changed.'),
  reason: {
    type: 'string',
    description: 'Why, as one word for programs.',
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  },
  message: text('Why, for people.', 32_768),
})

const secretVersion = object('A Secret and the version of it that the service was last given.', {
  name: { ...text('Name of the Secret.', 253), minLength: 1 },
  resourceVersion: text('Its metadata.resourceVersion.', 128),
})

export const statusSchema: StructuralSchema = object(
  'What the operator saw and did; written by it alone.',
  {
    observedGeneration: generation('The metadata.generation that the status speaks of.'),
    bufferId: text('Identifier of the buffer at the service.', 128),
    customerId: text('The account at the service that the buffer belongs to.', 128),
    intentGeneration: generation(
      'The metadata.generation at which the creation of the buffer was decided; noted before it is created.',
    ),
    ingestPath: text('Path at the ingest service to which senders POST.', 512),
    enabled: { type: 'boolean', description: 'Whether the buffer takes and delivers webhooks.' },
    host: text('Host, and port where the URL has one, that batches are delivered to.', 320),
    pausedReason: text('Why the service disabled the buffer by itself; absent while it has not.', 128),
    consecutiveDlqCount: {
      type: 'integer',
      description:
        'Batches that went to the dead letter queue since the last delivered one, when last looked at.',
      minimum: 0,
    },
    deadLetters: {
      type: 'integer',
      description: 'Dead letters of the buffer, counted up to 100. Up to a minute old.',
      minimum: 0,
    },
    lastDeadLetterTime: time('When the newest of them came there.'),
    secretVersions: listByKey(
      'The Secrets that are in use; a change of one is carried to the service.',
      'name',
      64,
      secretVersion,
    ),
    lastHandledResume: text(
      'Value of the annotation buffering.penstock.dev/resume that was last acted on, its first 256 characters.',
      256,
    ),
    lastHandledReconcile: text(
      'Value of the annotation buffering.penstock.dev/reconcile that was last acted on, its first 256 characters.',
      256,
    ),
    lastSyncTime: time('When the operator last changed the configuration at the service.'),
    conditions: listByKey('The state of the buffer.', 'type', 16, condition),
  },
  [],
)
