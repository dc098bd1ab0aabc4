/**
 * Penstock beside other systems on the same work: those that this machine can run are measured in turns, the others are
 * shown as reported. One cell alone: `peers/main.ts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { measureBacklog } from './peers/backlog.ts'
import { cellOf, STANDARD } from './peers/cells.ts'
import { compare } from './peers/compare.ts'
import { measureEventLoop } from './peers/event-loop.ts'
import { goalsOf } from './peers/goals.ts'
import { measureGroupMemory } from './peers/group-memory.ts'
import { keepPart } from './peers/kept.ts'
import { measureOpenGroups } from './peers/open-groups.ts'
import type { Part } from './peers/part.ts'
import { tableOf } from './peers/report.ts'
import type { Tools } from './peers/tools.ts'
import { whereNow } from './results.ts'

const PROGRAM = join(import.meta.dirname, 'peers', 'main.ts')
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

/**
 * All of it, each part kept as soon as it is measured, in a process of its own: what one leaves behind when it fails ends with
 * it. The others of a long run still count; rejects at the end.
 */
export async function comparePeers(): Promise<void> {
  const failed: string[] = []
  for (const name of ALL) {
    const child = spawn(process.execPath, [PROGRAM, '--keep', name], { stdio: 'inherit' })
    const end = () => child.kill('SIGTERM')
    process.once('exit', end)
    const [code] = (await once(child, 'exit')) as [number | null]
    process.off('exit', end)
    if (code !== 0) failed.push(name)
  }
  if (failed.length > 0) throw new Error(`not measured: ${failed.join(', ')}`)
}

/** Into the page; what was measured before stays when it fails. */
export async function keepMeasured(name: string, tools: Tools): Promise<void> {
  const where = whereNow()
  const part = await measurePart(name, ROUNDS, tools)
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
