/** Names of batches as parameters of a statement. */
import type { BatchName } from '../shard/journal/batch-name.ts'
import type { Queryable } from './connection.ts'

/** Of one statement: a tenth of a second over a line of 20 Mbit/s. */
const NAMES_AT_ONCE = 5_000

/** What `ask` answers for all of them, asked for some at a time. */
export async function askByName<T>(
  batches: readonly BatchName[],
  ask: (some: readonly BatchName[]) => Promise<T[]>,
): Promise<T[]> {
  const answers: T[] = []
  for (let from = 0; from < batches.length; from += NAMES_AT_ONCE) {
    for (const answer of await ask(batches.slice(from, from + NAMES_AT_ONCE))) answers.push(answer)
  }
  return answers
}

/** SQL of a table with the columns group and version. */
export function named(db: Queryable, batches: readonly BatchName[]) {
  const groups = batches.map(({ groupId }) => groupId)
  const versions = batches.map(({ version }) => version)
  return db`unnest(${groups}::text[], ${versions}::bigint[])`
}
