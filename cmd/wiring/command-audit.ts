/** Leaves what a command did in the audit of its customer (docs/operations/audit.md). */
import { randomUUID } from 'node:crypto'
import { type CommandRun, commandRecord } from '../../internal/audit/command.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

/** After it was done: never rejects, for it is done already. What cannot be written is told on standard error. */
export async function recordCommand(
  db: Database,
  run: Pick<CommandRun, 'customerId' | 'command' | 'target'>,
): Promise<void> {
  const record = commandRecord({ ...run, auditId: randomUUID(), createdAt: systemClock().now() })
  try {
    await createAuditStore(db).insert([record])
  } catch (error) {
    process.stderr.write(`this is not in the audit: ${String(error)}\n`)
  }
}
