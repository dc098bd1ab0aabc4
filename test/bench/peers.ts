/**
 * Penstock beside other systems on the same work: those that this machine can run are measured in turns, the others are
 * shown as reported. One cell alone: `peers/main.ts`.
 */
import { measureBacklog } from './peers/backlog.ts'
import { cellOf, STANDARD } from './peers/cells.ts'
import { compare } from './peers/compare.ts'
import { measureEventLoop } from './peers/event-loop.ts'
import { type Goal, goalsOf } from './peers/goals.ts'
import { measureGroupMemory } from './peers/group-memory.ts'
import { keepPart } from './peers/kept.ts'
import { measureOpenGroups } from './peers/open-groups.ts'
import type { Part } from './peers/part.ts'
import { tableOf } from './peers/report.ts'
import { Tools } from './peers/tools.ts'
import { whereNow } from './results.ts'

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

/** What `npm run bench -- peers` measures, in its order. */
export const ALL: readonly string[] = [...STANDARD, ...Object.keys(PARTS)]

/** All of it, each part kept as soon as it is measured. What fails is told in its place: the others of a long run still count. */
export async function comparePeers(): Promise<void> {
  const tools = new Tools()
  for (const name of ALL) await keepMeasured(name, ROUNDS, tools)
}

export async function keepMeasured(name: string, rounds: number, tools: Tools): Promise<void> {
  const where = whereNow()
  const part = await measurePart(name, rounds, tools).catch((error): Part => {
    const failed: Goal = { figure: `${name} failed`, bound: ['≥', 0], values: [] }
    return { text: `**${name} failed: ${error}**`, goals: [failed] }
  })
  keepPart(name, part, where, ALL)
  process.stdout.write(`${part.text}\n\n`)
}

/** A cell or another part; `ms`: sending of a cell's round, when it is not its own. */
export async function measurePart(name: string, rounds: number, tools: Tools, ms?: number): Promise<Part> {
  const cell = cellOf(name)
  if (cell === undefined) return PARTS[name]!(rounds, tools)
  const comparison = await compare({ ...cell, ms: ms ?? cell.ms }, rounds, tools)
  return { text: tableOf(comparison), goals: goalsOf(comparison) }
}
