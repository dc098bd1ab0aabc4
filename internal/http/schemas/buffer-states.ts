import { MOST_COUNTED } from '../../buffers/states.ts'
import { closed, count, flag, instant, integer, list, oneOf, text } from './shape.ts'

/** docs/reference/api.md, "Buffers". */

const bufferStateSchema = closed(
  'BufferState',
  'What changes about a buffer without its owner.',
  {
    bufferId: text('The buffer.', { minLength: 1 }),
    projectId: text('Its project.', { minLength: 1 }),
    enabled: flag('Whether it takes and delivers webhooks.'),
    pausedReason: oneOf('Why the service disabled it; absent: it did not.', ['consecutive_dead_letters']),
    pausedAt: instant('When the service disabled it'),
    consecutiveDlqCount: count('Dead letters since the last delivered batch.'),
    deadLetters: integer(`Its dead letters, counted up to ${MOST_COUNTED}.`, {
      minimum: 0,
      maximum: MOST_COUNTED,
    }),
    lastDeadLetterAt: instant('Creation of the newest one; absent: there is none'),
    updatedAt: instant('Last change of the configuration'),
  },
  ['pausedReason', 'pausedAt', 'lastDeadLetterAt'],
)

export const bufferStatesSchema = closed('BufferStates', 'All buffers that the credential reaches.', {
  tag: text('Names what stands here, but for the counts: send it as `after` to wait for a change.', {
    minLength: 1,
    maxLength: 64,
  }),
  buffers: list('In the order of their ids.', bufferStateSchema),
})
