/** Takes webhooks: checks, credits and packs (docs/architecture/protocol.md, "Roles and stores"). Stateless. */
import { backendsOfCluster } from '../wiring/backends.ts'
import { runProgram } from '../wiring/program.ts'

runProgram({ role: 'ingress', ingress: true, admin: false, actor: false, backends: backendsOfCluster })
