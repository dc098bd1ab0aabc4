/**
 * The crash suite for as long as one likes:
 *
 *   node test/faults/main.ts --seed 7 --kills 20 --items 5000
 *
 * Half of the kills with embedded servers that are left behind, half with servers beside the service and
 * kills at messages to the broker. Exit code 0: every promise held. The seed stands in the first line.
 */
import { parseArgs } from 'node:util'

import { killServers, stopServers } from '../support/servers.ts'
import { crashRun } from './crash.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    kills: { type: 'string', default: '20' },
    items: { type: 'string', default: '5000' },
    servers: { type: 'string' },
  },
})
const [seed, kills, items] = [Number(values.seed), Number(values.kills), Number(values.items)]
const both = ['embedded', 'own'] as const
const chosen = both.filter((each) => values.servers === undefined || values.servers === each)

process.on('exit', killServers)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.stdout.write(`seed ${seed}: ${kills} kills, ${items} items\n`)
try {
  for (const servers of chosen) {
    const share = Math.ceil(kills / chosen.length)
    const summary = await crashRun({ seed, servers, kills: share, items: Math.ceil(items / chosen.length) })
    process.stdout.write(`${servers}: ${JSON.stringify(summary)}\n`)
  }
} catch (error) {
  process.exitCode = 1
  process.stderr.write(`${error instanceof Error ? error.stack : error}\n`)
}
await stopServers()
process.exit()
