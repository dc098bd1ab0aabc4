import type { Clock } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'

/**
 * `GET /health`: `{status, version, checks}`, 200 while every dependency answers, else 503 (docs/reference/api.md,
 * "Health"). It is public, so a check tells only whether it holds, and a flood of requests runs each check once at a
 * time.
 */

/** Resolves while the dependency is usable, rejects when it is not. */
export type HealthCheck = () => Promise<unknown>

export interface Health {
  status: 'ok' | 'unavailable'
  version: string
  checks: Record<string, 'ok' | 'degraded' | 'down'>
}

/**
 * Checks whose failure is no reason to send traffic elsewhere: this node still takes what others deliver, and only a
 * webhook tells whether an inbox takes packs again.
 */
const NOT_OF_TRAFFIC: readonly string[] = ['inboxes', 'shards']

/** Whether traffic should come to this process (`/ready` of the ops port): all that a request needs answers. */
export function takesTraffic({ checks }: Health): boolean {
  return Object.entries(checks).every(([name, state]) => state !== 'down' || NOT_OF_TRAFFIC.includes(name))
}

/** A dependency that has not answered within this counts as down, ms. */
const DEADLINE_MS = 2_000

/**
 * `notices`: what is known already, and concerns some rows and not the node. One that does not hold is `degraded`, and
 * the answer stays 200.
 */
export function createHealth(
  clock: Clock,
  version: string,
  checks: Record<string, HealthCheck>,
  notices: Record<string, () => boolean> = {},
): () => Promise<Health> {
  let running: Promise<Health> | undefined
  return () => {
    running ??= examine(clock, version, checks, notices).finally(() => {
      running = undefined
    })
    return running
  }
}

async function examine(
  clock: Clock,
  version: string,
  checks: Record<string, HealthCheck>,
  notices: Record<string, () => boolean>,
): Promise<Health> {
  const names = Object.keys(checks)
  const states = await Promise.all(names.map((name) => holds(clock, checks[name]!)))
  return {
    status: states.every(Boolean) ? 'ok' : 'unavailable',
    version,
    checks: Object.fromEntries([
      ...names.map((name, index) => [name, states[index] ? 'ok' : 'down'] as const),
      ...Object.entries(notices).map(([name, holds]) => [name, holds() ? 'ok' : 'degraded'] as const),
    ]),
  }
}

function holds(clock: Clock, check: HealthCheck): Promise<boolean> {
  return withDeadline(clock, DEADLINE_MS, Promise.try(check)).then(
    () => true,
    () => false,
  )
}
