/** The mode of a key of Stripe. Without Stripe's package: the start asks before that is loaded. */

import type { ProviderMode } from '../../billing/ports.ts'

/** `key`: `sk_…` or `rk_…`. What is not of the live mode moves no money. */
export function modeOf(key: string): ProviderMode {
  return /^[a-z]+_live_/.test(key) ? 'live' : 'test'
}
