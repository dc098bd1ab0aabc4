import { parseCidr } from '../../internal/delivery/addresses.ts'
import { DeliveryClient, type DeliveryClientOptions } from '../../internal/delivery/client.ts'
import { Lookups, type LookupsOptions } from '../../internal/delivery/dns/lookups.ts'
import type { DeliveryConfig } from '../../internal/domain/model.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

const realClock = systemClock()

export const loopback = ['127.0.0.0/8', '::1'].map((text) => parseCidr(text)!)

/** A client that may reach loopback and has real time and the names of this machine, unless told otherwise. */
export function newClient(options: Partial<DeliveryClientOptions> = {}): DeliveryClient {
  const lookups = newLookups({})
  const resolve = (hostname: string, customerId: string) => lookups.resolve(hostname, customerId)
  const defaults = {
    clock: realClock,
    telemetry: { withheld() {} },
    version: '1.2.3',
    allow: loopback,
    resolve,
  }
  return new DeliveryClient({ ...defaults, ...options })
}

/** On real time. */
export function newLookups(options: Partial<LookupsOptions>): Lookups {
  return new Lookups({ clock: realClock, telemetry: { lookup() {} }, ...options })
}

export function target(url: string, more: Partial<DeliveryConfig> = {}): DeliveryConfig {
  return { url, method: 'POST', idempotencyHeader: 'x-idempotency-key', ...more }
}

export const batch = new TextEncoder().encode('{"items":[]}')
