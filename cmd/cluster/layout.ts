/** What `npm run cluster` tells whoever started it: what runs where, and how to go on. Pure. */
import type { Member } from './members.ts'

type Shown = Pick<Member, 'name' | 'pid' | 'address' | 'opsUrl'>

/** A table of the members; `dir`: where the nodes' logs and variables are. */
export function layoutLines(members: readonly Shown[], dir: string): string {
  const rows = members.map(({ name, pid, address, opsUrl }) => [
    name,
    String(pid),
    address ?? '-',
    opsUrl ?? '-',
  ])
  const table = columns([['node', 'pid', 'address', 'ops (live, ready, metrics)'], ...rows])
  return [
    '',
    ...table.map((line) => `  ${line}`),
    '',
    `  Each node's log is ${dir}/<node>.log. Nothing is started again by itself; to start a node again:`,
    `  node_modules/.bin/node --env-file=${dir}/<node>.env cmd/<role>/main.ts`,
    '',
    '',
  ].join('\n')
}

function columns(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}
