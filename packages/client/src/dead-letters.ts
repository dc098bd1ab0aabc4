/** All dead letters of a list that the API gives newest first and page by page. A page may be short, and not the last. */
import type { components } from './api.ts'

type Dead = components['schemas']['DlqItem']

/** The newest ones behind `cursor`; an empty page is the last. */
export type ReadPage = (cursor: string | undefined) => Promise<readonly Dead[]>

/** Reads no page before its first entry is asked for. */
export async function* newestFirst(read: ReadPage): AsyncGenerator<Dead, void> {
  for (let page = await read(undefined); page.length > 0; page = await read(cursorOf(page.at(-1))))
    yield* page
}

/**
 * Walks to the oldest page and keeps a cursor of each, not its content, which may be megabytes. Then reads each page
 * again, the last one first. So a caller may remove what it gets, and what comes meanwhile is the last to be given.
 */
export async function* oldestFirst(read: ReadPage): AsyncGenerator<Dead, void> {
  const ends: Dead[] = []
  for (let end = await endOf(read, undefined); end !== undefined; end = await endOf(read, end)) ends.push(end)
  for (let end = ends.pop(); end !== undefined; end = ends.pop())
    yield* (await between(read, ends.at(-1), end)).reverse()
}

async function endOf(read: ReadPage, from: Dead | undefined): Promise<Dead | undefined> {
  return (await read(cursorOf(from))).at(-1)
}

/** Those behind `from`, `end` included. Since the first reading the page may have become longer, or several. */
async function between(read: ReadPage, from: Dead | undefined, end: Dead): Promise<Dead[]> {
  const found: Dead[] = []
  for (let last = from; last === undefined || isNewer(last, end); ) {
    const page = await read(cursorOf(last))
    found.push(...page.filter((dead) => dead.dlqId === end.dlqId || isNewer(dead, end)))
    last = page.at(-1)
    if (last === undefined) break
  }
  return found
}

function isNewer(one: Dead, other: Dead): boolean {
  return one.createdAt > other.createdAt || (one.createdAt === other.createdAt && one.dlqId > other.dlqId)
}

function cursorOf(dead: Dead | undefined): string | undefined {
  return dead && `${dead.createdAt}_${dead.dlqId}`
}
