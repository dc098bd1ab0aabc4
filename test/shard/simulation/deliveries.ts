/** The destination as one process reaches it: a queue in front, slow and failing answers, requests that get lost. */
import type { AttemptResult, Deliverer } from '../../../internal/shard/ports.ts'
import type { ProcessLife } from './events.ts'
import type { Line } from './line.ts'
import type { Owner } from './owner.ts'
import type { World } from './world.ts'

/** Attempts that wait for a connection, and how long at most, ms. */
const QUEUED = { share: 0.15, ms: 400 }
/** Some destinations think for longer than a hand-over takes, ms. */
const THINKING = { share: 0.15, least: 100, most: 3_000 }

const LOST: AttemptResult = {
  delivered: false,
  retryable: true,
  statusCode: 0,
  errorClass: null,
  error: 'lost',
  durationMs: 0,
  responseBody: null,
}

export function destination(world: World, owner: Owner, life: ProcessLife, line: Line): Deliverer {
  const { events } = world
  const wait = (ms: number) => new Promise<void>((resume) => void life.after(ms, resume))
  return {
    hasRoom: () => true,
    attempt: async ({ record, key, body, proceed }) => {
      if (events.random() < QUEUED.share) await wait(events.between(0, QUEUED.ms))
      if (!proceed()) return { ...LOST, unsent: true }
      const attempt = world.attempts.began(owner, key, record())
      const beganAt = events.now
      const bytes = Buffer.from(body)
      if (events.random() < THINKING.share) await wait(events.between(THINKING.least, THINKING.most))
      const status = await line.act(() => world.deliver(key, bytes, owner.epoch)).catch(() => 0)
      const result = resultOf(status, events.now - beganAt)
      world.attempts.ended(attempt, result)
      return result
    },
  }
}

/** `status`: 0 when no answer came. */
function resultOf(status: number, durationMs: number): AttemptResult {
  const rejected = status >= 400 && status < 500
  const delivered = status === 200
  return { ...LOST, delivered, retryable: !delivered && !rejected, statusCode: status, durationMs }
}
