/** What stands in a body: items as they were sent, byte for byte, and what the body says of itself. */
import { readKey, versionOf } from './batch-key.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { Batch, BatchItem } from './history.ts'

/** Clocks of two processes of one machine differ by less, ms. */
const CLOCKS_MS = 50

export function checkInvented(evidence: Evidence): Violation[] {
  return evidence.batches.flatMap((batch) => {
    const strange = batch.items.filter((item) => !isAsSent(evidence, batch, item))
    const repeated = batch.items.length - new Set(batch.items.map(({ n }) => n)).size
    if (strange.length === 0 && repeated === 0) return []
    return [{ rule: 'invented', detail: { batch: batch.key, repeated, strange } }]
  })
}

function isAsSent(evidence: Evidence, batch: Batch, item: BatchItem): boolean {
  const sent = evidence.sent(item.n)
  if (sent?.answer && sent.answer.status >= 400 && sent.answer.status < 500) return false
  const ownId = sent?.messageId ?? sent?.answer?.itemId ?? item.messageId
  return (
    sent?.bufferId === batch.bufferId &&
    sent.groupKey === batch.groupKey &&
    sent.payloadHash === item.payloadHash &&
    item.messageId === ownId
  )
}

export function checkContents(evidence: Evidence): Violation[] {
  const untrue = evidence.batches.flatMap((batch) => {
    const wrong = wrongFields(evidence, batch)
    return wrong.length === 0 ? [] : [{ rule: 'untrue', detail: { batch: batch.key, wrong } }]
  })
  return [...untrue, ...checkGroups(evidence), ...checkSegments(evidence)]
}

function wrongFields(evidence: Evidence, batch: Batch): string[] {
  const { key, bufferId, origin, window, items, strange } = batch
  const [terms] = evidence.told.until(bufferId, Number.POSITIVE_INFINITY)
  if (!terms) return [`no such buffer: ${bufferId}`]
  const received = items.map(({ receivedAt }) => receivedAt)
  const right: Record<string, boolean> = {
    'svc.customerId': origin.customerId === terms.customerId,
    'svc.projectId': origin.projectId === terms.projectId,
    'svc.groupHash': origin.groupHash === readKey(key)?.groupId,
    'svc.segment': Number.isInteger(origin.segment) && origin.segment >= 0,
    'window.itemsCount': window.itemsCount === items.length,
    'window.firstItemAt': window.firstItemAt === Math.min(...received),
    'window.lastActivityAt': window.lastActivityAt === Math.max(...received),
    'items.receivedAt': items.every((item) => wasReceivedThen(evidence, item)),
  }
  return [...strange, ...Object.keys(right).filter((field) => !right[field])]
}

/** By the ingress, between the request and its answer. */
function wasReceivedThen(evidence: Evidence, { n, receivedAt }: BatchItem): boolean {
  const sent = evidence.sent(n)
  // What nobody sent is another breach.
  if (!sent) return true
  return (
    receivedAt >= sent.sentAt - CLOCKS_MS &&
    receivedAt <= (sent.answer?.at ?? Number.POSITIVE_INFINITY) + CLOCKS_MS
  )
}

/** A hash names one group, and a group has one hash. */
function checkGroups(evidence: Evidence): Violation[] {
  const groups = new Map<string, string>()
  const hashes = new Map<string, string>()
  return evidence.batches.flatMap(({ key, bufferId, groupKey, origin: { groupHash } }) => {
    const group = JSON.stringify([bufferId, groupKey])
    const known = (groups.get(groupHash) ?? group) === group && (hashes.get(group) ?? groupHash) === groupHash
    groups.set(groupHash, group)
    hashes.set(group, groupHash)
    return known ? [] : [{ rule: 'untrue', detail: { batch: key, wrong: ['svc.groupHash of two groups'] } }]
  })
}

/** Segments of a group count up; an empty group begins at 0 again. */
function checkSegments(evidence: Evidence): Violation[] {
  const ofGroups = Map.groupBy(evidence.batches, ({ origin }) => origin.groupHash)
  return [...ofGroups.values()].flatMap((batches) => {
    const inOrder = batches.toSorted((one, other) => versionOf(one) - versionOf(other))
    const falls = inOrder.filter(({ origin: { segment } }, index) => {
      const before = inOrder[index - 1]?.origin.segment ?? 0
      return segment !== 0 && segment < before
    })
    return falls.map(({ key }) => ({ rule: 'untrue', detail: { batch: key, wrong: ['svc.segment falls'] } }))
  })
}
