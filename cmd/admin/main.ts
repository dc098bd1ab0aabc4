/** Serves the management API (docs/architecture/protocol.md, "Roles and stores"). Stateless. */
import { Receiver } from '../../internal/http/receiver.ts'
import { backendsOfCluster } from '../wiring/backends.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({
  role: 'admin',
  ingress: false,
  admin: true,
  actor: false,
  backends: backendsOfCluster,
  routes: ({ config, clock }) => (config.local ? [new Receiver(clock).middleware] : []),
})
