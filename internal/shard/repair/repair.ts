/** The repair of one shard, from what is wrong to a shard that any node may claim (docs/architecture/repair.md). */
import { SnapshotArchive } from '../archive/snapshot-archive.ts'
import { type ExaminationOptions, examine, type Findings, needsRepair } from './examination.ts'
import { type InboxRepairOptions, repairInbox } from './inbox-repair.ts'
import { type JournalRepairOptions, repairJournal } from './journal-repair.ts'

export type RepairOptions = ExaminationOptions &
  InboxRepairOptions &
  Pick<JournalRepairOptions, 'syncLagMs' | 'onWhole'>

/**
 * What was wrong; null when nothing is. Nobody may own the shard meanwhile. It may be interrupted at any moment:
 * the shard stays stopped, and the next run goes on.
 */
export async function repairShard(options: RepairOptions): Promise<Findings | null> {
  const { broker, shard, copies } = options
  const findings = await examine(options)
  if (!needsRepair(findings)) {
    // Of a run that was interrupted before its last step.
    if (findings.journal.copied) await copies.remove(shard)
    return null
  }
  // The inbox first: what proves anything of it is lost with the old journal.
  if (!findings.journal.truncatedWithoutSnapshot) await repairInbox(options)
  if (findings.journal.fault !== null)
    await repairJournal({
      ...options,
      journal: broker.journal(shard),
      archive: new SnapshotArchive({
        archive: broker.archive(shard),
        clock: options.clock,
        writer: options.boot,
      }),
      findings: findings.journal,
      lostBelow: findings.inbox?.lostBelow ?? null,
    })
  return findings
}
