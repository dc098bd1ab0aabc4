/** The lines of `npm run shards`. */
import type { ShardRow, ShardTable } from '../../internal/shard/status/shard-table.ts'
import type { SurveyedShard } from '../../internal/shard/status/survey.ts'

type Cells = readonly string[]

/** What logs and leases tell, a line a shard. `now`: Unix ms. */
export function surveyLines(shards: readonly SurveyedShard[], now: number): string {
  const logs = ['inbox', 'of', 'journal', 'of', 'archive', 'of']
  const head = ['shard', 'owner', 'node', 'epoch', 'last commit', 'state', ...logs]
  return table([head, ...shards.map((shard) => surveyCells(shard, now))])
}

function surveyCells({ shard, inbox, journal, archive, owner, listedBy }: SurveyedShard, now: number): Cells {
  const logs = [inbox, journal, archive].flatMap(({ messages, bytes, maxBytes }) => [
    `${messages} (${size(bytes)})`,
    maxBytes > 0 ? size(maxBytes) : 'no limit',
  ])
  if (owner === null) return [`${shard}`, '-', '-', '-', '-', 'never claimed', ...logs]
  const { boot, epoch, released, at, lease } = owner
  const node = lease?.node ?? listedBy[0]?.node ?? '-'
  const listed = listedBy.some((each) => each.boot === boot)
  const state = released ? 'released' : listed ? 'owned' : lease ? 'not listed by its owner' : 'owner is gone'
  return [`${shard}`, boot.slice(0, 8), node, `${epoch}`, `${age(now - at)} ago`, state, ...logs]
}

/** What the nodes themselves tell: `GET /shards` of their ops ports. */
export function tableLines(tables: readonly ShardTable[]): string {
  const head = ['shard', 'state', 'horizon', 'lag', 'items', 'oldest', 'outstanding', 'skew', 'trouble']
  const rows = tables.flatMap(({ shards }) => shards.filter(({ here }) => here))
  const cells = rows.sort((a, b) => a.shard - b.shard).map(rowCells)
  return table([head, ...cells])
}

function rowCells(row: ShardRow): Cells {
  const [oldest] = row.oldest ?? []
  const batch = row.outstanding?.oldest
  return [
    `${row.shard}`,
    row.state,
    `${row.horizon ?? '-'}`,
    `${row.lag ?? '-'}`,
    row.items === undefined ? '-' : `${row.items} (${size(row.payloadBytes ?? 0)})`,
    oldest ? `${age(oldest.ageMs)} ${oldest.bufferId ?? oldest.bufferUid}` : '-',
    row.outstanding ? `${row.outstanding.count}${batch ? `, ${age(batch.ageMs)}` : ''}` : '-',
    row.skewMs === null ? '-' : `${row.skewMs} ms`,
    row.trouble ?? '',
  ]
}

function table(rows: readonly Cells[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const line = (row: Cells) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')
  return `${rows.map((row) => line(row).trimEnd()).join('\n')}\n`
}

function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1_000 ** power).toFixed(1)} ${units[power - 1]}`
}

function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3_600)} h`
}
