/**
 * The actor with snapshots and cuts behind a few KB instead of many MB, so that a test reaches them within seconds. What protects retries
 * and waits for the disk is as it always is.
 */
import { backendsOfCluster } from '../../cmd/wiring/backends.ts'
import { runProgram } from '../../cmd/wiring/program.ts'
import { HOUSEKEEPING_LIMITS } from '../../internal/shard/housekeeping/limits.ts'

runProgram({
  role: 'actor',
  ingress: false,
  admin: false,
  actor: true,
  backends: backendsOfCluster,
  housekeeping: {
    ...HOUSEKEEPING_LIMITS,
    everyMs: 250,
    keepRatio: 1,
    keepBytes: 20_000,
    snapshotBytes: 4_000,
    partBytes: 500,
  },
})
