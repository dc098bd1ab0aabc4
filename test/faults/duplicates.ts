/** What a destination got again although it had accepted it: the price of faults, never an error by itself. */
import { cutsDeliveries } from './causes.ts'
import { Evidence } from './evidence.ts'
import type { Delivery, Fault, History } from './history.ts'

/**
 * Deliveries of a key after a 2xx to it, by the kind of the latest fault that began before and can cause that. Without such
 * a fault: `given up`, when a sender on a busy machine did not hear the answer within 10 s; `stall`, when the machine stood
 * still before; or `none`.
 */
export function duplicatesByFault(history: History): Record<string, number> {
  const evidence = new Evidence(history)
  const counts: Record<string, number> = {}
  for (const attempts of evidence.attempts.values()) {
    const accepted = attempts.findIndex(({ status }) => status >= 200 && status < 300)
    for (const [index, again] of attempts.entries()) {
      if (accepted < 0 || index <= accepted) continue
      const kind = kindAt(history.faults, again) ?? withoutFault(evidence, attempts[index - 1]!, again)
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

function kindAt(faults: readonly Fault[], { at }: Delivery): string | undefined {
  const fault = faults.findLast((each) => each.from <= at && cutsDeliveries(each))
  return fault && kindOf(fault)
}

function withoutFault(evidence: Evidence, before: Delivery, again: Delivery): string {
  if (evidence.wasGivenUp(before) || evidence.wasGivenUp(again)) return 'given up'
  const stood = evidence
    .faultsBetween(evidence.sentFrom(before), again.at)
    .some(({ kind }) => kind === 'stall')
  return stood ? 'stall' : 'none'
}

/** Without the number of the node: `kill actor`. */
function kindOf({ kind }: Fault): string {
  return kind.replace(/ -$|-\d+$/, '')
}
