import { parseCidr } from '../../internal/delivery/addresses.ts'
import { DeliveryClient, type DeliveryClientOptions } from '../../internal/delivery/client.ts'
import type { DeliveryConfig } from '../../internal/domain/model.ts'
import type { Clock } from '../../internal/runtime/clock.ts'

const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, task) => {
    const timer = setTimeout(task, ms)
    return () => clearTimeout(timer)
  },
}

export const loopback = ['127.0.0.0/8', '::1'].map((text) => parseCidr(text)!)

/** A client that may reach loopback and has real time, unless told otherwise. */
export function newClient(options: Partial<DeliveryClientOptions> = {}): DeliveryClient {
  return new DeliveryClient({ clock: realClock, version: '1.2.3', allow: loopback, ...options })
}

export function target(url: string, more: Partial<DeliveryConfig> = {}): DeliveryConfig {
  return { url, method: 'POST', idempotencyHeader: 'x-idempotency-key', ...more }
}

export const batch = new TextEncoder().encode('{"items":[]}')
