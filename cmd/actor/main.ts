/**
 * Runs shards: groups, batches, deliveries (docs/architecture/protocol.md, "Roles and stores"). Listens on the ops
 * port only.
 */
import { backendsOfCluster } from '../wiring/backends.ts'
import { WATCHED } from '../wiring/child-nodes.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({
  role: 'actor',
  ingress: false,
  admin: false,
  actor: true,
  backends: backendsOfCluster,
  watched: () => process.argv.includes(WATCHED),
})
