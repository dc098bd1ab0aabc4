/** What a destination got again although it had accepted it: the price of faults, never an error by itself. */
import { cutsDeliveries } from './causes.ts'
import type { Delivery, Fault, History } from './history.ts'

/** Deliveries of a key after a 2xx to it, by the kind of the latest fault that began before and can cause that; `none` without one. */
export function duplicatesByFault(history: History): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const attempts of Map.groupBy(history.deliveries, ({ key }) => key).values()) {
    const accepted = attempts.findIndex(({ status }) => status >= 200 && status < 300)
    for (const again of accepted < 0 ? [] : attempts.slice(accepted + 1)) {
      const kind = kindAt(history.faults, again)
      counts[kind] = (counts[kind] ?? 0) + 1
    }
  }
  return counts
}

/** How often there was which kind of fault. */
export function timesOfFaults(faults: readonly Fault[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const fault of faults) counts[kindOf(fault)] = (counts[kindOf(fault)] ?? 0) + 1
  return counts
}

function kindAt(faults: readonly Fault[], { at }: Delivery): string {
  const fault = faults.findLast((each) => each.from <= at && cutsDeliveries(each))
  return fault ? kindOf(fault) : 'none'
}

/** Without the number of the node: `kill actor`. */
function kindOf({ kind }: Fault): string {
  return kind.replace(/ -$|-\d+$/, '')
}
