import type { Context, Middleware } from 'koa'
import type { Notifications } from '../billing/notifications.ts'
import { BadNotificationError } from '../billing/readings.ts'
import { errors, ServiceError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { readBody } from './body.ts'
import type { BodyShares } from './body-shares.ts'
import { answerEarly } from './early-answer.ts'
import { originOf } from './origin.ts'

/**
 * Where a payment provider tells what happened (docs/reference/api.md, "Notifications of the payment provider"). Its
 * signature is the credential. 200: it need not be told again. 400: it is not the provider's. 503 with `Retry-After`: tell it
 * again.
 */

/** Largest body of a notification, bytes. */
export const MAX_NOTIFICATION_BYTES = 1_000_000

export const PAYMENTS_PREFIX = '/v1/payments/'

export interface PaymentRouteOptions {
  /** Name of the provider: the last part of the path. */
  name: string
  notifications: Notifications
  clock: Clock
  /** Of all notifications that arrive. */
  bodies: BodyShares
  /** Told of every notification that is not the provider's; `reason` in one line. */
  onRefused: (reason: string) => void
}

const REFUSALS = {
  'too-large': errors.bodyTooLarge,
  encoded: errors.bodyEncoded,
  busy: errors.bodiesBusy,
} as const

/** Koa middleware of `POST /v1/payments/<name>`. */
export function paymentRoute(options: PaymentRouteOptions): Middleware {
  const path = PAYMENTS_PREFIX + options.name
  return async (ctx, next) => {
    if (ctx.path !== path) return next()
    if (ctx.method !== 'POST') {
      ctx.status = ctx.method === 'OPTIONS' ? 204 : 405
      ctx.set('Allow', 'POST, OPTIONS')
      return
    }
    // Anybody can send one. Whoever sends them from one address leaves room to the provider.
    const room = options.bodies.of(originOf(ctx.req).address ?? '')
    const body = await readBody(ctx.req, ctx.res, MAX_NOTIFICATION_BYTES, room)
    if (typeof body === 'string') {
      ctx.respond = false
      if (body === 'aborted') return
      const refusal = REFUSALS[body]
      answerEarly(options.clock, ctx.req, ctx.res, {
        ...refusal,
        body: JSON.stringify({ error: refusal.error }),
      })
      return
    }
    try {
      await take(ctx, body, options)
    } finally {
      room.giveBack(body.length)
    }
  }
}

async function take(
  ctx: Context,
  body: Uint8Array,
  { notifications, onRefused }: PaymentRouteOptions,
): Promise<void> {
  try {
    const taken = await notifications.take({ body, header: (name) => headerOf(ctx, name) })
    if (taken === 'later') throw new ServiceError('notificationLater')
    ctx.status = 200
    ctx.body = { received: true }
  } catch (error) {
    if (error instanceof BadNotificationError) {
      onRefused(error.message)
      throw new ServiceError('notificationInvalid')
    }
    if (error instanceof ServiceError) throw error
    throw new ServiceError('providerUnavailable', {}, { cause: error })
  }
}

/** undefined: it is absent, or stands there twice. */
function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.headers[name]
  return typeof value === 'string' ? value : undefined
}
