/** The own lease of a process, and what the leases of others are good for. */
import { hostname } from 'node:os'
import { joinLeases, type Leases } from '../../internal/nats/leases/leases.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { SERIALIZER } from '../../internal/shard/batches/body.ts'
import type { NodeRole } from '../../internal/shard/ownership/membership.ts'
import type { Logs, Node, Store } from './foundation.ts'
import { checkNeighbours } from './neighbours.ts'

/** Joins the installation. Rejects as `checkNeighbours` throws. */
export async function joinInstallation(
  { config, lifecycle, clock, log, boot }: Node,
  { connection, shards }: Logs,
  { role, version }: { role: NodeRole; version: string },
  fail: (error: Error) => void,
): Promise<Leases> {
  const leases = await lifecycle.acquire(
    'lease',
    () =>
      joinLeases({
        connection,
        clock,
        random: systemRandomness(),
        replicas: config.replicas,
        node: {
          boot,
          role,
          node: hostname(),
          version,
          installation: { shards, serializer: SERIALIZER },
        },
        onFatal: fail,
        onProblem: (what, error) => log.warn({ error: String(error) }, what),
      }),
    (it) => it.close(),
  )
  // Once more: somebody may have started at the same time.
  checkNeighbours(leases.leases(), shards)
  return leases
}

/** Tells the shards until when this node waits for their verdicts. To be called before its ledger opens. */
export async function announceWebhooks({ lifecycle }: Node, leases: Leases): Promise<void> {
  await lifecycle.acquire(
    'webhooks',
    (signal) => {
      leases.announce({ webhooks: 'taken' })
      signal.addEventListener('abort', () => leases.announce({ webhooks: 'ending' }))
    },
    () => leases.announce({ webhooks: 'none' }),
  )
}

/** How often ledgers are looked through, ms. */
const LEDGERS_EVERY_MS = 5_000

/**
 * Refunds what nodes that are gone had charged and not settled (docs/architecture/protocol.md, "Unsettled credits").
 * Any node may.
 */
export async function startClosingLedgers(
  { lifecycle, clock, log }: Node,
  { db }: Store,
  leases: Leases,
): Promise<void> {
  const round = async () => {
    try {
      for (const refund of await closeNodes(db, (boot) => leases.isGone(boot))) {
        log.warn(refund, 'credits of a node that is gone came back')
      }
    } catch (error) {
      log.warn({ error: String(error) }, 'the ledgers of gone nodes wait')
    }
  }
  await lifecycle.acquire(
    'closing of ledgers',
    () => {
      let cancel = clock.after(LEDGERS_EVERY_MS, function next() {
        void round().then(() => {
          cancel = clock.after(LEDGERS_EVERY_MS, next)
        })
      })
      return { stop: async () => cancel() }
    },
    (it) => it.stop(),
  )
}
