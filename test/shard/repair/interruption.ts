import type { RepairOptions } from '../../../internal/shard/repair/ports.ts'

export class Interruption extends Error {}

/** The repair ends at its `steps`th write: before it, or right after it was stored. */
export function interrupted(options: RepairOptions, steps: number, stored: boolean): RepairOptions {
  let left = steps
  const guard = async <T>(write: () => Promise<T>): Promise<T> => {
    if (left === 0 && stored) await write()
    if (left-- <= 0) throw new Interruption()
    return write()
  }
  const guarded = <T extends object>(stream: T): T =>
    new Proxy(stream, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        const bound = value.bind(target)
        return name === 'append' ? (...args: unknown[]) => guard(() => bound(...args)) : bound
      },
    })
  const { broker, copies } = options
  return {
    ...options,
    broker: {
      ...broker,
      inbox: (n) => guarded(broker.inbox(n)),
      journal: (n) => guarded(broker.journal(n)),
      archive: (n) => guarded(broker.archive(n)),
    },
    copies: {
      load: (n) => copies.load(n),
      save: (n, messages) => guard(() => copies.save(n, messages)),
      remove: (n) => guard(() => copies.remove(n)),
      emptyJournal: (n, seq) => guard(() => copies.emptyJournal(n, seq)),
    },
  }
}
