/** Serves the management API (design, section 1). Stateless. */
import { Receiver } from '../../internal/http/receiver.ts'
import { groundOfCluster } from '../wiring/ground.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({
  ...{ role: 'admin', ingress: false, admin: true, actor: false },
  ground: groundOfCluster,
  routes: ({ config, clock }) => (config.local ? [new Receiver(clock).middleware] : []),
})
