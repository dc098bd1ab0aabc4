/**
 * Penstock beside other systems on the same work: those that this machine can run are measured in turns, the others are
 * shown as reported. One cell alone: `peers/main.ts`.
 */
import { measureBacklog } from './peers/backlog.ts'
import { cellOf, STANDARD } from './peers/cells.ts'
import { compare } from './peers/compare.ts'
import { measureEventLoop } from './peers/event-loop.ts'
import { goalsOf, tableOfGoals } from './peers/goals.ts'
import { measureGroupMemory } from './peers/group-memory.ts'
import { measureOpenGroups } from './peers/open-groups.ts'
import type { Part } from './peers/part.ts'
import { tableOf } from './peers/report.ts'
import { reportedElsewhere } from './peers/reported.ts'
import { Tools } from './peers/tools.ts'

/** Of everything. */
export const ROUNDS = 5
/** Groups a step; as many come before the first. */
const MEMORY = { groups: 20_000, steps: 5 }
const OPEN_GROUPS: [number, number] = [100, 100_000]
/** Batches of a round. */
const BACKLOG = 5_000

/** Parts by name, `cells` aside. */
export const PARTS: Record<string, (rounds: number, tools: Tools) => Promise<Part>> = {
  'group-memory': (_, tools) => measureGroupMemory(MEMORY.groups, MEMORY.steps, tools),
  'open-groups': (rounds) => measureOpenGroups(OPEN_GROUPS, rounds),
  backlog: (rounds, tools) => measureBacklog(BACKLOG, rounds, tools),
  'event-loop': (rounds) => measureEventLoop(rounds),
}

/** Markdown: every figure that has a goal, then all tables. At most 25 minutes. */
export async function comparePeers(): Promise<string> {
  const tools = new Tools()
  const parts: Part[] = []
  for (const name of [...STANDARD, ...Object.keys(PARTS)]) {
    parts.push(await measured(name, tools))
    process.stdout.write(`${parts.at(-1)!.text}\n\n`)
  }
  const goals = parts.flatMap((part) => part.goals)
  return [tableOfGoals(goals), ...parts.map(({ text }) => text), reportedElsewhere()].join('\n\n')
}

/** What fails is told in its place: the others of a long run still count. */
async function measured(name: string, tools: Tools): Promise<Part> {
  try {
    return await measurePart(name, ROUNDS, tools)
  } catch (error) {
    return { text: `**${name} failed: ${error}**`, goals: [] }
  }
}

/** A cell or another part; `ms`: sending of a cell's round, when it is not its own. */
export async function measurePart(name: string, rounds: number, tools: Tools, ms?: number): Promise<Part> {
  const cell = cellOf(name)
  if (cell === undefined) return PARTS[name]!(rounds, tools)
  const comparison = await compare({ ...cell, ms: ms ?? cell.ms }, rounds, tools)
  return { text: tableOf(comparison), goals: goalsOf(comparison) }
}
