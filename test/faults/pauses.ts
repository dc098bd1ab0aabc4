/** How long nothing went on, by the answers that senders had and by the journals. */
import type { History, StoredCommit } from './history.ts'

/** The longest time from `before`, at or ahead of a release, to `behind` it, ms; the broker's times. */
export function longestOver(
  history: History,
  before: (commit: StoredCommit) => boolean,
  behind: (commit: StoredCommit) => boolean,
): number {
  const pauses = [...Map.groupBy(history.commits, ({ shard }) => shard).values()].flatMap((ofShard) =>
    ofShard.flatMap(({ records }, index) => {
      if (!records.includes('release')) return []
      const last = ofShard.slice(0, index + 1).findLast(before)
      const next = ofShard.slice(index + 1).find(behind)
      return last && next ? [next.at - last.at] : []
    }),
  )
  return Math.max(0, ...pauses)
}

export const seals = ({ records }: StoredCommit) => records.includes('seal')
export const releases = ({ records }: StoredCommit) => records.includes('release')
export const goesOn = ({ records }: StoredCommit) => !records.includes('epoch')

/** The longest time between two requests that were answered 202, ms. */
export function longestPause({ sent }: History): number {
  const times = sent
    .flatMap(({ answer }) => (answer?.status === 202 ? [answer.at] : []))
    .sort((a, b) => a - b)
  return Math.max(0, ...times.slice(1).map((at, index) => at - times[index]!))
}
