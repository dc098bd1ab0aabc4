/** `node test/shard/ownership/placement-table.ts`: writes the table of placement in docs/architecture/shard.md anew. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../../bench/figures.ts'
import { sectionOf, withSection } from '../../support/sections.ts'
import { type Change, type Simulated, simulate } from './placement-simulation.ts'

const PAGE = join(import.meta.dirname, '..', '..', '..', 'docs', 'architecture', 'shard.md')
const SECTION = 'placement'
const SHARDS = [16, 64, 256, 1_024, 4_096]
const NODES = [1, 3, 10, 50, 200, 500]

export function simulateAll(): Simulated[] {
  return SHARDS.flatMap((shards) => NODES.map((nodes) => simulate(shards, nodes)))
}

/** In Markdown; every figure is the greatest of all seeds. */
export function placementTable(rows: readonly Simulated[]): string {
  const head = ['shards', 'nodes', 'shards a node', 'most ÷ mean']
  const join = ['join: to the joiner', '÷ S/N', 'among the others']
  const leave = ['leave: off the leaver', '÷ S/N', 'among the others']
  const hashed = ['hashing alone, join: most ÷ mean', 'among the others']
  return table([...head, ...join, ...leave, ...hashed], rows.map(cellsOf))
}

/** The table that stands in the page now. */
export function writtenTable(): string {
  return sectionOf(readFileSync(PAGE, 'utf8'), SECTION)
}

function cellsOf({ shards, nodes, least, most, join, leave, hashedJoin }: Simulated): string[] {
  const load = least === most ? `${most}` : `${least}–${most}`
  return [
    ...[`${shards}`, `${nodes}`, load, shareOf(most, shards / nodes)],
    ...moves(join, shards / (nodes + 1)),
    ...(leave === null ? ['', '', ''] : moves(leave, shards / nodes)),
    ...[shareOf(hashedJoin.most, shards / (nodes + 1)), `${hashedJoin.others}`],
  ]
}

function moves({ own, others }: Change, mean: number): string[] {
  return [`${own}`, shareOf(own, mean), `${others}`]
}

function shareOf(load: number, mean: number): string {
  return (load / mean).toFixed(2)
}

function write(): void {
  writeFileSync(PAGE, withSection(readFileSync(PAGE, 'utf8'), SECTION, placementTable(simulateAll())))
}

if (import.meta.main) write()
