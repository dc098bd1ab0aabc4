/** The payment provider of the local instance, as every process of `npm start` that takes requests has it. */
import { localPaymentRoutes } from '../../internal/http/local-payments.ts'
import { createLocalProvider } from '../../internal/payments/local/local-provider.ts'
import { createLocalPaymentStore } from '../../internal/postgres/local-payments.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import type { OwnProvider } from '../wiring/payments.ts'

/** undefined where this is no local instance. */
export const localPayments: OwnProvider = ({ config, clock, log }, parts) => {
  if (!config.local) return undefined
  const provider = createLocalProvider({
    store: createLocalPaymentStore(parts.store.db),
    catalogue: parts.catalogue,
    customers: parts.customers,
    baseUrl: () => reachable(parts.address()),
    async deliver({ body, headers }) {
      const taken = await parts.notifications().take({ body, header: (name) => headers[name] })
      return taken === 'taken'
    },
    clock,
    randomness: systemRandomness(),
    onProblem: (error) => log.warn({ error: String(error) }, 'events of the local payment provider wait'),
  })
  return { provider, routes: [localPaymentRoutes({ provider, clock, host: config.host })] }
}

/** What listens on all addresses is reached by this one from here. */
function reachable(address: string): string {
  const url = new URL(address)
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  return url.origin
}
