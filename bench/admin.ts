/**
 * The management API beside ingest: what 100 of its requests a second take from ingest, and how long reads take
 * at 10,000 buffers and 100,000 dead letters.
 */
import { confidence, table } from './figures.ts'
import { LOAD, untilDelivered, WINDOW } from './ingest.ts'
import type { Account } from './load/account.ts'
import { type ReadName, reads } from './load/admin-requests.ts'
import type { Told } from './load/client.ts'
import type { Sliced } from './load/generator.ts'
import { monotonicMs } from './load/program.ts'
import {
  type Client,
  type Generator,
  type Sink,
  startClient,
  startGenerator,
  startSink,
} from './load/programs.ts'
import { cpuOf, machineBusyMs, sumOf } from './processes.ts'
import { fillAccounts } from './rows.ts'
import { type Penstock, startPenstock } from './systems.ts'

/** The customer that ingests. */
const SMALL: Account = { customerId: 'bench', projects: 20, buffers: 100, deadLetters: 1_000 }
const LARGE: Account = { customerId: 'large', projects: 20, buffers: 10_000, deadLetters: 100_000 }
const PER_SECOND = 100
/** Slices of ingest without and with admin requests in turns, so that whatever else the machine does falls on both. */
const SLICE_MS = 500
const PAIRS = 80
const WARM_MS = 3_000
const REST_MS = 5_000
/** A service that has run for a while is meant: each of its paths has to be compiled first, at 100 requests a second. */
const FIRST_MS = 30_000
const TIMES = 200
const MAX_READ_MS = 5_000

interface Lab {
  penstock: Penstock
  client: Client
  generator: Generator
  sink: Sink
}

interface Beside {
  /** Even slices are without admin requests, odd ones with. */
  sent: Sliced
  told: Told
  /** Share of the machine's CPU time that was neither the service's nor its load's. */
  foreign: number
}

/** Markdown: ingest with and without, then reads. */
export async function measureAdmin(options: { sync: string; pairs?: number }): Promise<string> {
  const { sink, url } = await startSink()
  const penstock = await startPenstock({ sync: options.sync, customers: [LARGE.customerId] })
  const lab = { penstock, sink, client: startClient(), generator: startGenerator() }
  await penstock.createBuffer({ bufferId: 'items', batch: WINDOW, deliverTo: url })
  await fillAccounts(penstock.dataDir, [SMALL, LARGE])
  const atRest = await rest(lab)
  const beside = await besideIngest(lab, options.pairs ?? PAIRS)
  const reading = await readAll(lab)
  await Promise.all([penstock.stop(), lab.client.stop(), lab.generator.stop(), sink.stop()])
  return [ingestTable(beside), requestTable(atRest, beside), reading].join('\n\n')
}

interface Rest {
  told: Told
  /** CPU of all processes of the service for one request, ms. */
  cpuMs: number
}

/** The mix with nothing beside it, once without measuring. */
async function rest(lab: Lab): Promise<Rest> {
  await lab.client.ask({ ...mixOf(lab), ms: FIRST_MS })
  const before = sumOf(lab.penstock.cpu())
  const told = await lab.client.ask({ ...mixOf(lab), ms: REST_MS })
  return { told, cpuMs: (sumOf(lab.penstock.cpu()) - before) / told.requests }
}

async function besideIngest(lab: Lab, pairs: number): Promise<Beside> {
  const { penstock, generator, sink, client } = lab
  await sink.ask({ kind: 'reset' })
  const startAt = monotonicMs() + WARM_MS
  const before = { own: ownCpuMs(lab), machine: machineBusyMs() }
  const load = { url: penstock.ingestUrl, headers: penstock.headers, firstId: 0, explicit: true, ...LOAD }
  const [sent, told] = await Promise.all([
    // One slice more than pairs: each slice with admin requests has a neighbour without on both sides.
    generator.ask({ kind: 'sliced', ...load, startAt, sliceMs: SLICE_MS, slices: 2 * pairs + 1 }),
    client.ask({ ...mixOf(lab), startAt: startAt + SLICE_MS, ms: SLICE_MS, times: pairs }),
  ])
  const own = ownCpuMs(lab) - before.own
  const machine = machineBusyMs() - before.machine
  await untilDelivered(sink, sent.accepted)
  return { sent, told, foreign: Math.max(0, (machine - own) / machine) }
}

function mixOf({ penstock }: Lab) {
  const target = { url: penstock.url, headers: penstock.as(SMALL.customerId), account: SMALL }
  return { kind: 'mix' as const, ...target, perSecond: PER_SECOND }
}

function ownCpuMs({ penstock, generator, sink, client }: Lab): number {
  const programs = [generator, sink, client].map(({ pid }) => sumOf(cpuOf(pid)))
  return programs.reduce((sum, ms) => sum + ms, sumOf(penstock.cpu()))
}

function ingestTable({ sent, foreign }: Beside): string {
  const { counts, ackP50Ms, ackP99Ms } = sent
  const odd = counts.filter((_, slice) => slice % 2 === 1)
  const even = counts.filter((_, slice) => slice % 2 === 0)
  const ratios = odd.map((count, n) => (2 * count) / (even[n]! + even[n + 1]!))
  const row = (name: string, of: number[], parity: 0 | 1) => [
    name,
    confidence(
      of.map((count) => (count * 1_000) / SLICE_MS),
      0,
    ),
    parity === 0 ? '' : confidence(ratios, 3),
    `${ackP50Ms[parity].toFixed(1)} / ${ackP99Ms[parity].toFixed(1)}`,
  ]
  const head = ['beside ingest', 'accepted/s', 'with ÷ without', 'ack p50 / p99 ms']
  const rows = [row('nothing', even, 0), row(`${PER_SECOND} admin requests/s`, odd, 1)]
  const share = `${(100 * foreign).toFixed(0)} %`
  return `${table(head, rows)}\n\n${odd.length} pairs of slices of ${SLICE_MS} ms; ${sent.failed} ingest requests failed; foreign CPU ${share}.`
}

function requestTable({ told, cpuMs }: Rest, beside: Beside): string {
  const row = (name: string, { requests, p50Ms, p99Ms, failed }: Told) => [
    name,
    ...[requests, p50Ms.toFixed(1), p99Ms.toFixed(1), failed].map(String),
  ]
  const rows = [row('at rest', told), row('beside ingest', beside.told)]
  const failures = [told, beside.told].flatMap(({ firstFailure }) => firstFailure ?? [])
  const cost = `One of them takes ${cpuMs.toFixed(1)} ms of CPU in all processes of the service at rest.`
  return [table(['admin requests', 'number', 'p50 ms', 'p99 ms', 'failed'], rows), cost, ...failures].join(
    '\n\n',
  )
}

async function readAll(lab: Lab): Promise<string> {
  const rows: string[][] = []
  for (const name of Object.keys(reads) as ReadName[]) {
    const cells: string[] = []
    for (const account of [SMALL, LARGE]) cells.push(...(await readOne(lab, account, name)))
    rows.push([name, ...cells])
  }
  const head = [SMALL, LARGE].flatMap(({ buffers, deadLetters }) => [
    `${buffers.toLocaleString('en')} buffers, ${deadLetters.toLocaleString('en')} dead letters: KB`,
    'p50 / p99 ms',
    'CPU ms',
  ])
  return table(['read', ...head], rows)
}

/** One after the other, nothing beside it. CPU of all processes of the service. */
async function readOne({ penstock, client }: Lab, account: Account, name: ReadName): Promise<string[]> {
  const target = { url: penstock.url, headers: penstock.as(account.customerId), account }
  const before = sumOf(penstock.cpu())
  const told = await client.ask({ kind: 'read', ...target, name, times: TIMES, maxMs: MAX_READ_MS })
  if (told.failed > 0) throw new Error(told.firstFailure)
  const cpuMs = (sumOf(penstock.cpu()) - before) / told.requests
  return [
    (told.bytes / 1_024).toFixed(1),
    `${told.p50Ms.toFixed(1)} / ${told.p99Ms.toFixed(1)}`,
    cpuMs.toFixed(1),
  ]
}
