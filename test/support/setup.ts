/**
 * Loaded by mocha before the tests (`.mocharc.json`): ends the shared servers with the run, also when it
 * fails, is interrupted, or never ends because a test left something open.
 */
import { config } from 'chai'
import { watchAnswers } from './answers.ts'
import { killServers, stopServers } from './servers.ts'
import { stopSharedInstallation } from './shared-installation.ts'
import { pass } from './traffic.ts'

/** A run is over when nothing is left to do; whatever still holds it after this was leaked by a test, ms. */
const LEAK_GRACE_MS = 10_000

export async function mochaGlobalTeardown(): Promise<void> {
  await stopSharedInstallation()
  await stopServers()
  setTimeout(reportLeaks, LEAK_GRACE_MS).unref()
}

export function mochaGlobalSetup(): void {
  // A failure that is seen once, in a run elsewhere, must say all that was found.
  config.truncateThreshold = 2_000
  watchAnswers()
  process.on('exit', killServers)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
}

/** What has passed is part of what a whole run shows of the contract. */
export const mochaHooks: Mocha.RootHookObject = {
  afterEach(this: Mocha.Context) {
    if (this.currentTest?.state === 'passed') pass(this.currentTest.fullTitle())
  },
}

function reportLeaks(): void {
  process.stderr.write(`a test left open: ${process.getActiveResourcesInfo().join(', ')}\n`)
  process.exit(1)
}
