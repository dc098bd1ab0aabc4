/** The tables of docs/reference/metrics.md. */

import { type LogCall, logCalls, problemTexts, programSources } from './log-calls.ts'
import { eventMeanings, problemMeanings } from './log-events.ts'
import { code, table } from './table.ts'
import { type Family, observe, type TelemetrySource, telemetrySources, type WideEvent } from './telemetry.ts'

export async function metricTable(source: TelemetrySource): Promise<string> {
  const { families } = await observe(source)
  return table(
    ['metric', 'type', 'labels', 'meaning'],
    families.map((family) => [
      code(family.name),
      family.unit === '' ? family.type : `${family.type}, ${family.unit}`,
      labelsOf(family),
      `${family.help}.`,
    ]),
  )
}

/** A label of which one value was seen has as many as there are shards, statuses and the like. */
function labelsOf({ labels }: Family): string {
  const texts = [...labels].map(([name, values]) =>
    values.length === 1 ? code(name) : `${code(name)}: ${code(...values)}`,
  )
  return texts.join('; ')
}

/** Events whose members are the same each time. */
export async function wideEventTable(): Promise<string> {
  const events = inOrder(eventMeanings, await wideEvents(), ({ name }) => name)
  return table(
    ['event', 'level', 'members', 'meaning'],
    events.map(({ name, levels, members }) => [
      code(name),
      levels.join(', '),
      code(...members),
      meaningOf(eventMeanings, name),
    ]),
  )
}

async function wideEvents(): Promise<WideEvent[]> {
  const sources = Object.keys(telemetrySources) as TelemetrySource[]
  const observed = await Promise.all(sources.map(observe))
  return observed.flatMap(({ events }) => events)
}

/** All further events that the sources name. */
export async function otherEventTable(): Promise<string> {
  const wide = new Set((await wideEvents()).map(({ name }) => name))
  const others = logCalls(programSources()).filter(({ event }) => !wide.has(event))
  refuseUnknown(eventMeanings, [...wide, ...others.map(({ event }) => event)])
  const ordered = inOrder(eventMeanings, others, ({ event }) => event)
  return table(['event', 'level', 'meaning'], ordered.map(otherCells))
}

function otherCells({ event, levels }: LogCall): string[] {
  return [code(event), levels.join(', '), meaningOf(eventMeanings, event)]
}

/** `problem` events of shards by their member `what`, and those of leases, which are events of their own. */
export function problemTable(from: 'shards' | 'leases'): string {
  const folder = { shards: 'internal/shard/', leases: 'internal/nats/leases/' }[from]
  const texts = problemTexts(programSources().filter(({ path }) => path.startsWith(folder)))
  refuseUnknown(problemMeanings[from], texts)
  return table(
    ['text', 'meaning'],
    inOrder(problemMeanings[from], texts, (text) => text).map((text) => [
      code(text),
      meaningOf(problemMeanings[from], text),
    ]),
  )
}

/** In the order in which the meanings stand, which is by subject. */
function inOrder<T>(
  meanings: Readonly<Record<string, string>>,
  items: readonly T[],
  nameOf: (item: T) => string,
): T[] {
  const places = new Map(Object.keys(meanings).map((name, place) => [name, place]))
  const placeOf = (item: T) => places.get(nameOf(item)) ?? places.size
  return [...items].sort((a, b) => placeOf(a) - placeOf(b))
}

function meaningOf(meanings: Readonly<Record<string, string>>, name: string): string {
  const meaning = meanings[name]
  if (meaning === undefined) throw new Error(`cmd/docs/log-events.ts does not say what "${name}" means`)
  return meaning
}

function refuseUnknown(meanings: Readonly<Record<string, string>>, known: readonly string[]): void {
  const gone = Object.keys(meanings).filter((name) => !known.includes(name))
  if (gone.length > 0) throw new Error(`no source tells "${gone.join('", "')}" any more`)
}
