import { type ErrorEntry, errors } from '../../domain/errors.ts'
import { closed, count, integer, oneOf, text } from './shape.ts'

/** Bodies of refusals (docs/reference/errors.md, "Errors"). */

const entries: readonly ErrorEntry[] = Object.values(errors)
const codes = [...new Set(entries.flatMap(({ code }) => (code === undefined ? [] : [code])))]

export const errorSchema = closed(
  'Error',
  'A request that was refused.',
  {
    error: text('What is wrong, for people; several problems are joined by "; ".', { minLength: 1 }),
    code: oneOf('What is wrong, for programs.', codes, 'ErrorCode'),
    message: text('More about it: the roles that are allowed.', { minLength: 1 }),
  },
  ['code', 'message'],
)

export const insufficientCreditsSchema = closed(
  'InsufficientCredits',
  'A webhook that the balance does not cover.',
  {
    error: text('What is wrong, for people.', { minLength: 1 }),
    credits: integer('Current balance, credits.'),
    required: integer('Credits that the request needs.', { minimum: 1 }),
    message: text('Both numbers in a sentence.', { minLength: 1 }),
  },
)

export const deliveryFailedSchema = closed(
  'DeliveryFailed',
  'A manual retry that the destination did not accept.',
  {
    error: text('What is wrong, for people.', { minLength: 1 }),
    code: oneOf('What is wrong, for programs.', ['delivery_failed']),
    dlqId: text('The dead letter.', { minLength: 1 }),
    itemCount: integer('Items in the batch.', { minimum: 1 }),
    statusCode: integer('HTTP status of the destination; 0 when there was none.', {
      minimum: 0,
      maximum: 999,
    }),
    durationMs: { type: 'number', description: 'Duration of the attempt, milliseconds.', minimum: 0 },
    lastError: text('Error of this attempt.', { minLength: 1 }),
    errorClass: oneOf(
      'Kind of error.',
      ['timeout', 'connection', 'dns', 'tls', 'blocked_destination', 'http_4xx', 'http_5xx', 'http_other'],
      'ErrorClass',
    ),
    retryCount: count('Failed manual retries, this one included.'),
  },
)
