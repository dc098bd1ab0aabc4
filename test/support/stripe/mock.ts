/**
 * Stripe's own mock of its API (test/payments/stripe/stripe-mock.sh builds it once). With CI set a missing one is an
 * error, else what needs it is skipped by name.
 */

import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { StripeSchema } from './schema.ts'

const SCRIPT = join(import.meta.dirname, '..', '..', 'payments', 'stripe', 'stripe-mock.sh')
const STARTS_WITHIN_MS = 30_000

/** Folder of the mock, or why there is none. */
export function mockFolder(): { path: string } | { why: string } {
  const env = { ...process.env, STRIPE_MOCK_BUILD: process.env.CI ? '1' : '0' }
  try {
    return { path: execFileSync(SCRIPT, { env, encoding: 'utf8', stdio: 'pipe' }).trim() }
  } catch (error) {
    return { why: String((error as { stderr?: string }).stderr ?? error).trim() }
  }
}

/** For a `before` hook; `what` is skipped without it. */
export function mockFolderOrSkip(context: Mocha.Context, what: string): string {
  const folder = mockFolder()
  if ('path' in folder) return folder.path
  const missing = `missing stripe-mock (${folder.why}); ${SCRIPT} builds it`
  if (process.env.CI) throw new Error(`${what}: ${missing}`)
  process.stderr.write(`\n*** SKIPPED: ${what}: ${missing}. ***\n\n`)
  return context.skip() as never
}

/** Stripe's OpenAPI document; undefined where the mock is not built. With CI set it must be. */
export function stripeSchema(): StripeSchema | undefined {
  const folder = mockFolder()
  if ('path' in folder) return new StripeSchema(join(folder.path, 'spec3.json'))
  if (process.env.CI) throw new Error(`missing stripe-mock (${folder.why})`)
  return undefined
}

/** A running mock, and how to end it. It answers requests as the document allows, and keeps nothing. */
export async function startStripeMock(folder: string): Promise<{ origin: string; stop(): Promise<void> }> {
  const mock = spawn(join(folder, 'stripe-mock'), ['-http-addr', '127.0.0.1:0', '-strict-version-check'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<void>((resolve) => mock.once('exit', () => resolve()))
  const stop = async () => {
    mock.kill('SIGKILL')
    await exited
  }
  const address = await new Promise<string>((resolve, reject) => {
    let printed = ''
    const timer = setTimeout(
      () => reject(new Error(`stripe-mock does not start: ${printed}`)),
      STARTS_WITHIN_MS,
    )
    const read = (chunk: Buffer) => {
      printed += chunk
      const found = /(127\.0\.0\.1:\d+)/.exec(printed)
      if (found === null) return
      clearTimeout(timer)
      resolve(found[1]!)
    }
    mock.stdout.on('data', read)
    mock.stderr.on('data', read)
    void exited.then(() => reject(new Error(`stripe-mock ended: ${printed}`)))
  }).catch(async (error) => {
    await stop()
    throw error
  })
  return { origin: `http://${address}`, stop }
}
