/**
 * A member in a process of its own, to be stopped and continued: `node lease-holder.ts <boot> <boot of another>`,
 * the broker's URL in LEASE_BROKER. Prints a line for each change of what it believes.
 */

import { connectBroker } from '../../internal/nats/connection.ts'
import { joinLeases } from '../../internal/nats/leases/leases.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { TTL_MS } from './lease-members.ts'

const [boot = '', other = ''] = process.argv.slice(2)
const silent = { connection: () => {}, warning: () => {} }
const connection = await connectBroker({ servers: [process.env.LEASE_BROKER ?? ''] }, 1, silent)
const say = (line: string) => process.stdout.write(`${line}\n`)
const leases = await joinLeases({
  connection,
  ttlMs: TTL_MS,
  replicas: 1,
  clock: systemClock(),
  random: systemRandomness(),
  node: {
    boot,
    role: 'ingress',
    node: 'holder',
    version: '0.1.0',
    installation: { shards: 8, serializer: 1 },
  },
  onFatal: (error) => say(`fatal: ${error.message}`),
  onProblem: () => {},
})

let believed = ''
const look = () => {
  const belief = `held ${leases.held}, other gone ${leases.isGone(other)}`
  if (belief !== believed) say(belief)
  believed = belief
}
leases.onChange(look)
// Also between changes: what is believed for a moment only counts.
setInterval(look, 5)
look()
process.on('SIGTERM', () => {
  void leases
    .close()
    .then(() => connection.close())
    .then(() => process.exit(0))
})
