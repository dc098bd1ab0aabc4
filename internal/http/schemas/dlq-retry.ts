import { closed, integer, number, oneOf, text } from './shape.ts'

/** docs/reference/api.md, "Dead letters": the 200 of a retry. Its 502 stands with the errors. */
export const dlqRetrySchema = closed('DlqRetry', 'A manual retry that the destination accepted.', {
  success: { type: 'boolean', description: 'Always true.', enum: [true] },
  status: oneOf('What became of the batch.', ['delivered']),
  message: text('The same in a sentence.', { minLength: 1 }),
  dlqId: text('The dead letter that was removed.', { minLength: 1 }),
  itemCount: integer('Items in the batch.', { minimum: 1 }),
  statusCode: integer('HTTP status of the destination.', { minimum: 200, maximum: 299 }),
  durationMs: number('Duration of the attempt, milliseconds.', { minimum: 0 }),
})
