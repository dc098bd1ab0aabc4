/** Suspends a customer or resumes it, and says what that did. */
import { createSuspensions } from '../../internal/accounts/suspensions.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { recordCommand } from '../wiring/command-audit.ts'

/** One line. Throws 400 for a bad id, 404 for an unknown customer. */
export async function setSuspended(db: Database, customerId: string, suspended: boolean): Promise<string> {
  const suspensions = createSuspensions(createSuspensionStore(db))
  const { changed, suspendedAt, buffers } = await suspensions.set(customerId, suspended)
  const command = `npm run account -- ${suspended ? '--suspend' : '--resume'}`
  // One that finds everything as it should be has done nothing.
  if (changed || buffers > 0) await recordCommand(db, { customerId, command })
  const followed = `${buffers} ${buffers === 1 ? 'buffer' : 'buffers'} changed`
  if (!suspended) return `${customerId} ${changed ? 'is resumed' : 'was not suspended'}: ${followed}`
  if (changed) return `${customerId} is suspended: ${followed}`
  const since = suspendedAt === null ? '' : `, since ${new Date(suspendedAt).toISOString()}`
  return `${customerId} was suspended before${since}: ${followed}`
}
