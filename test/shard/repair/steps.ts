import type { JournalCopies, RepairOptions } from '../../../internal/shard/repair/ports.ts'

const SYNC_LAG_MS = 600_000

/**
 * A repair on a broker that syncs now and then. Its waits for that end once `during` has resolved; they, the ends of snapshots and
 * what it removes are noted. `during` is given the number of the wait, from 1 on.
 */
export function notingSteps(
  options: RepairOptions,
  steps: string[],
  during: (wait: number) => Promise<unknown> = async () => {},
): RepairOptions {
  const noting =
    <A extends unknown[], R>(step: string, call: (...args: A) => R) =>
    (...args: A): R => {
      steps.push(step)
      return call(...args)
    }
  const { broker, copies, clock } = options
  const noted: JournalCopies = {
    load: (shard) => copies.load(shard),
    save: noting('save', (shard, messages) => copies.save(shard, messages)),
    remove: noting('remove', (shard) => copies.remove(shard)),
    emptyJournal: noting('emptyJournal', (shard, seq) => copies.emptyJournal(shard, seq)),
  }
  return {
    ...options,
    syncLagMs: SYNC_LAG_MS,
    onWhole: () => steps.push('whole'),
    copies: noted,
    broker: {
      ...broker,
      archive: (shard) => {
        const archive = broker.archive(shard)
        return {
          append: (data, message) => {
            if (message.subject.endsWith('.end')) steps.push('snapshot')
            return archive.append(data, message)
          },
          state: () => archive.state(),
          list: (filter) => archive.list(filter),
          lastOf: (subject) => archive.lastOf(subject),
          remove: (filter) => archive.remove(filter),
        }
      },
    },
    clock: {
      ...clock,
      after: (ms, call) => {
        if (ms !== SYNC_LAG_MS) return clock.after(ms, call)
        steps.push('wait')
        void during(steps.filter((step) => step === 'wait').length).then(call)
        return () => {}
      },
    },
  }
}
