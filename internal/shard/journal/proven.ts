import type { Journal } from './journal.ts'

/**
 * What a successor carried forward or purged is over, and a server that is cut off from its peers answers with what it had. So a loss
 * is one only when it is found again behind a commit, and one more commit follows.
 */
export async function proven<T>(journal: Pick<Journal, 'prove'>, check: () => Promise<T>): Promise<T> {
  try {
    return await check()
  } catch {
    await journal.prove()
  }
  return check().catch(async (error: unknown) => {
    await journal.prove()
    throw error
  })
}
