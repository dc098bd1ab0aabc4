/**
 * `npm run payments -- register https://… | check | sweep`: Stripe's side of an installation (docs/guide/billing.md).
 * `register` makes the webhook endpoint and prints its secret once. `check` prints what is wrong with offers and
 * endpoint, a line a fault. `sweep` reads now what may have been missed. Exit code 0: nothing is wrong.
 */
import { connect } from '../../internal/payments/stripe/client.ts'
import { endpointFaults } from '../../internal/payments/stripe/endpoint.ts'
import { offerFaults } from '../../internal/payments/stripe/offer-faults.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { type Config, readConfig, type StripeConfig } from '../config/config.ts'
import { readCatalogue } from '../wiring/billing.ts'
import { register } from './register.ts'
import { sweep } from './sweep.ts'

const USAGE = 'usage: npm run payments -- register https://… | check | sweep'

type Wanted = { act: 'register'; base: string } | { act: 'check' | 'sweep' }

/** undefined: it is no use of the command. */
function parseArguments([act, base, ...more]: readonly string[]): Wanted | undefined {
  if (more.length > 0) return undefined
  if (act === 'register') return base !== undefined && isAddress(base) ? { act, base } : undefined
  return base === undefined && (act === 'check' || act === 'sweep') ? { act } : undefined
}

/** Stripe sends to https alone, and signs what it sends. */
function isAddress(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.search === '' && url.hash === '' && url.username === ''
}

/** Lines that are printed, and whether all is well. */
async function run(wanted: Wanted, config: Config): Promise<{ lines: string[]; isFine: boolean }> {
  const { stripe: settings } = config
  if (settings === undefined) throw new Error('PENSTOCK_STRIPE_KEY is not set')
  if (wanted.act === 'sweep') return await sweep(config, settings)
  const { stripe } = connect({ ...settings, clock: systemClock() })
  if (wanted.act === 'register') return { lines: await register(stripe, wanted.base), isFine: true }
  const catalogue = readCatalogue(config.catalogFile)
  const faults = (await Promise.all([offerFaults(stripe, catalogue), endpointFaults(stripe)])).flat()
  const lines = [...faults, ...secretFaults(settings)]
  return lines.length === 0
    ? { lines: ['catalogue, offers and endpoint fit'], isFine: true }
    : { lines, isFine: false }
}

function secretFaults({ webhookSecrets }: StripeConfig): string[] {
  return webhookSecrets.length > 0
    ? []
    : ['PENSTOCK_STRIPE_WEBHOOK_SECRETS is not set: no notification is taken']
}

const wanted = parseArguments(process.argv.slice(2))
if (wanted === undefined) {
  process.stderr.write(`${USAGE}\n`)
  process.exitCode = 2
} else {
  try {
    const { lines, isFine } = await run(wanted, readConfig(process.env, 'penstock'))
    process.stdout.write(`${lines.join('\n')}\n`)
    if (!isFine) process.exitCode = 1
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
