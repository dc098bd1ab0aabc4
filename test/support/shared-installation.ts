/**
 * One running service for all tests of a run that need nothing of their own but projects, buffers and, for
 * credits, a customer. It is started when first asked for and stopped with the run (`setup.ts`).
 */
import { createInstallation, type Installation } from './service.ts'

/** Customers without any credit at first, for tests that count them. */
const PAYERS = 8

let starting: Promise<Installation> | undefined
let payersGiven = 0

/** Do not stop it: see `createInstallation`. Its first customer has credits for everybody. */
export function sharedInstallation(): Promise<Installation> {
  starting ??= startShared()
  return starting
}

/** The id of a customer that nobody else uses, with exactly `credits`. */
export async function freshPayer(credits: number): Promise<string> {
  if (payersGiven >= PAYERS) throw new Error(`all ${PAYERS} customers are given away`)
  const customerId = payerName(payersGiven++)
  const installation = await sharedInstallation()
  if (credits > 0) await installation.api(customerId).addCredits(credits)
  return customerId
}

export async function stopSharedInstallation(): Promise<void> {
  const installation = await starting?.catch(() => undefined)
  await installation?.stop()
  starting = undefined
}

async function startShared(): Promise<Installation> {
  const installation = await createInstallation({
    shared: true,
    env: { PENSTOCK_INITIAL_CREDITS: '0' },
    customers: ['e2e', ...Array.from({ length: PAYERS }, (_, index) => payerName(index))],
  })
  await installation.start()
  await installation.api().addCredits(100_000)
  return installation
}

function payerName(index: number): string {
  return `payer-${index}`
}
