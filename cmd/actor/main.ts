/** Runs shards: groups, batches, deliveries (design, section 1). Listens on the ops port only. */
import { groundOfCluster } from '../wiring/ground.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({ role: 'actor', ingress: false, admin: false, actor: true, ground: groundOfCluster })
