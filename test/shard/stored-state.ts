/** The state of a shard as its archive and journal tell it now, read past its owner. */
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { SnapshotArchive } from '../../internal/shard/archive/snapshot-archive.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { readJournal } from '../../internal/shard/claim/journal-reading.ts'
import type { FoldState } from '../../internal/shard/journal/state.ts'

const clock = systemClock()

export async function storedState(
  broker: Pick<Broker, 'journal' | 'archive'>,
  shard = 0,
): Promise<FoldState> {
  const journal = broker.journal(shard)
  const archive = new SnapshotArchive({ archive: broker.archive(shard), clock, writer: null })
  const { lastSeq } = await journal.state()
  return (await readJournal({ journal, archive, clock }, lastSeq)).state
}
