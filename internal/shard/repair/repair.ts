/** The repair of one shard, from what is wrong to a shard that any node may claim (docs/architecture/repair.md). */
import { examine, type Findings, needsRepair } from './examination.ts'
import { repairInbox } from './inbox-repair.ts'
import { repairJournal } from './journal-repair.ts'
import type { RepairOptions } from './ports.ts'

/**
 * What was wrong; null when nothing is. Nobody may own the shard meanwhile. It may be interrupted at any moment:
 * the shard stays stopped, and the next run goes on.
 */
export async function repairShard(options: RepairOptions): Promise<Findings | null> {
  const { shard, copies } = options
  const findings = await examine(options)
  if (!needsRepair(findings)) {
    // Of a run that was interrupted before its last step.
    if (findings.journal.copied) await copies.remove(shard)
    return null
  }
  // The inbox first: what proves anything of it is lost with the old journal.
  if (!findings.journal.truncatedWithoutSnapshot) await repairInbox(options)
  if (findings.journal.fault !== null) await repairJournal(options, findings)
  return findings
}
