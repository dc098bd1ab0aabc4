import { closed, count, flag, integer, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Buffers": the outcome of a test delivery. */
export const bufferTestSchema = closed('BufferTest', 'The outcome of a test delivery.', {
  success: flag('Whether the destination answered 2xx within 10 seconds.'),
  statusCode: integer('HTTP status of the destination; 0 when there was none.', { minimum: 0, maximum: 999 }),
  durationMs: count('Duration of the attempt, milliseconds.'),
  responseBody: orNull(text('The first 4 KB of the response body as text; null when there was none.')),
  error: orNull(text('Why it failed; null when it did not.')),
})
