/**
 * The parts of the reference pages that the code knows. They stand between `<!-- generated: name -->` and
 * `<!-- end: name -->`; what stands around them is written by hand and stays.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buckets, daysParameter, summaryFields, timeseriesFields } from './analytics.ts'
import { apiSections, bodyText, commonErrors, endpointsOf, roleTable } from './api.ts'
import { bufferFields, deliveryBatch, errorClasses, flushReasons, reservedHeaders } from './buffers.ts'
import { readerTable, variableTable } from './configuration.ts'
import { type ErrorGroup, errorGroups, errorTable, refusalBodies } from './errors.ts'
import { limitTable } from './limits.ts'
import { metricTable, otherEventTable, problemTable, wideEventTable } from './metrics.ts'
import { type TelemetrySource, telemetrySources } from './telemetry.ts'

export const REFERENCE = join(import.meta.dirname, '..', '..', 'docs', 'reference')

type Part = () => string | Promise<string>
type Parts = Readonly<Record<string, Part>>

/** Parts by page, each by its name. */
export const pages: Readonly<Record<string, Parts>> = {
  'configuration.md': { variables: variableTable, readers: readerTable },
  'buffers.md': {
    fields: bufferFields,
    'flush reasons': flushReasons,
    'delivery batch': deliveryBatch,
    'reserved headers': reservedHeaders,
    'error classes': errorClasses,
  },
  'api.md': {
    'common errors': commonErrors,
    roles: roleTable,
    ...each(apiSections, (section) => [`endpoints of ${section}`, () => endpointsOf(section)]),
    limits: limitTable,
  },
  'analytics.md': {
    summary: summaryFields,
    timeseries: timeseriesFields,
    days: daysParameter,
    buckets,
  },
  'errors.md': {
    bodies: () => [...refusalBodies].map(bodyText).join('\n\n'),
    ...each(Object.keys(errorGroups) as ErrorGroup[], (group) => [
      `errors of ${group}`,
      () => errorTable(group),
    ]),
  },
  'metrics.md': {
    ...each(Object.keys(telemetrySources) as TelemetrySource[], (source) => [
      `metrics of ${source}`,
      () => metricTable(source),
    ]),
    'wide events': wideEventTable,
    'other events': otherEventTable,
    'problems of shards': () => problemTable('shards'),
    'problems of leases': () => problemTable('leases'),
  },
}

function each<T>(items: readonly T[], part: (item: T) => [name: string, part: Part]): Parts {
  return Object.fromEntries(items.map(part))
}

export interface GeneratedFile {
  readonly path: string
  readonly content: string
}

/** The pages as they should be. Rejects for a page that lacks a part, or has one that nobody makes. */
export function generated(): Promise<GeneratedFile[]> {
  return Promise.all(
    Object.entries(pages).map(async ([name, parts]) => {
      const path = join(REFERENCE, name)
      return { path, content: await withParts(readFileSync(path, 'utf8'), parts) }
    }),
  )
}

const MARK = /^<!-- generated: (.+) -->\n.*?^<!-- end: \1 -->$/gms

export async function withParts(page: string, parts: Parts): Promise<string> {
  const texts = new Map<string, string>()
  for (const [name, part] of Object.entries(parts)) texts.set(name, await part())
  const names = [...page.matchAll(MARK)].map(([, name = '']) => name)
  const marks = page.match(/^<!-- (?:generated|end): /gm)?.length ?? 0
  if (marks !== 2 * names.length) throw new Error('a mark of the page has no other end')
  if (new Set(names).size < names.length) throw new Error('the page has a part twice')
  const missing = [...texts.keys()].filter((name) => !names.includes(name))
  if (missing.length > 0) throw new Error(`the page has no place for ${missing.join(', ')}`)
  return page.replace(MARK, (_, name: string) => {
    const text = texts.get(name)
    if (text === undefined) throw new Error(`nobody makes the part ${name} of the page`)
    return `<!-- generated: ${name} -->\n\n${text}\n\n<!-- end: ${name} -->`
  })
}
