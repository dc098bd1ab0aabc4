/** Takes webhooks: checks, credits and packs (design, section 1). Stateless. */
import { groundOfCluster } from '../wiring/ground.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({ role: 'ingress', ingress: true, admin: false, actor: false, ground: groundOfCluster })
