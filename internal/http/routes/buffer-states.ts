import type { Principal } from '../../domain/principal.ts'
import { type Route, route } from './route.ts'

/** The use case that this row calls. */
export interface BufferStatesService {
  /** `{tag, buffers}`: at once, or when the tag is another one than `after`, after `waitMs` at the latest. 429: too many of the customer ask. */
  states(
    principal: Principal,
    request: { after?: string; waitMs: number; gone: AbortSignal },
  ): Promise<unknown>
}

/** Shorter than a load balancer waits for an answer, s. */
const MAX_WAIT_SECONDS = 50

/** docs/reference/api.md, "Buffers". */
export function bufferStateRoutes(states: BufferStatesService): Route[] {
  return [
    route<unknown, { after?: string; waitSeconds: number }, unknown>({
      method: 'GET',
      path: '/v1/admin/buffer-states',
      operationId: 'readBufferStates',
      summary: 'See pauses and dead letters of all buffers, or wait for a change',
      action: 'read',
      query: {
        after: {
          type: 'string',
          description:
            '`tag` of an earlier answer: wait until a buffer is created, changed, paused, resumed or deleted after it.',
          minLength: 1,
          maxLength: 64,
        },
        waitSeconds: {
          type: 'integer',
          description: 'How long to wait at most. The answer tells how it stands, changed or not.',
          minimum: 0,
          maximum: MAX_WAIT_SECONDS,
          default: 0,
        },
      },
      answers: { status: 200, schema: 'BufferStates' },
      errors: [],
      waitsFor: 'change',
      handler: async ({ principal, query: { after, waitSeconds }, gone }) => {
        const request = { ...(after !== undefined && { after }), waitMs: waitSeconds * 1_000, gone: gone() }
        return { status: 200, body: await states.states(principal, request) }
      },
    }),
  ]
}
