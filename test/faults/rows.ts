/**
 * The rows of the fault matrix that are about several nodes, each with real processes, under load, and with the
 * judgement at the end. `main` of the fault suite runs them by number; they take a minute or two each.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'

import { eventually } from '../support/eventually.ts'
import { readMetrics } from '../support/metrics.ts'
import { freshDatabase } from '../support/servers.ts'
import { perform, release } from './acts.ts'
import { ClusterTrial, type ClusterTrialOptions } from './cluster-trial.ts'
import { startLoad } from './crash.ts'
import { duplicatesByFault } from './duplicates.ts'
import type { Fault } from './history.ts'
import { createLoadBuffers, whileSwitching } from './load-buffers.ts'
import type { NodePlace } from './node-place.ts'
import { type PartedBrokers, partedBrokers } from './parted-brokers.ts'
import { goesOn, longestOver, longestPause, releases, seals } from './pauses.ts'
import { accepts, leaderOf, type RowContext, WAIT } from './row-acts.ts'
import type { SelfEnd } from './self-ends.ts'
import { serverCutOff } from './server-cut-off.ts'
import { within } from './trial.ts'

/** Three times the TTL of a lease, ms. */
const LONG_MS = 15_000

/** What a row shows beside that it holds. */
export interface RowSummary {
  readonly accepted: number
  readonly duplicates: Readonly<Record<string, number>>
  readonly selfEnds: readonly SelfEnd[]
  /** The longest time in which no request was accepted, ms. */
  readonly pauseMs: number
  /** The longest time from the release of a shard to the first commit of its next owner behind the claim, ms. */
  readonly takeOverMs: number
  /** The longest time from the last seal of an owner that released its shard to the first of the next one, ms. */
  readonly handOverMs: number
}

/** Rejects with what does not hold. */
export async function runRow(row: string, seed: number): Promise<RowSummary> {
  const { play, options, parted } = ROWS[row]!
  const brokers = parted ? await partedBrokers() : null
  const servers = brokers && { broker: brokers, databaseUrl: await freshDatabase() }
  const trial = await ClusterTrial.open({
    ...options,
    ...(servers && { servers }),
    label: `row-${row}`,
    seed,
  })
  try {
    const playRow = parted && brokers ? (context: RowContext) => parted(context, brokers) : play!
    return await trial.keeping(() => playOn(trial, playRow))
  } finally {
    await trial.close()
  }
}

async function playOn(trial: ClusterTrial, play: NonNullable<Row['play']>): Promise<RowSummary> {
  await createLoadBuffers(trial)
  const load = startLoad(trial, { writers: 16, pauseMs: 100 })
  await whileSwitching(trial, async () => {
    await accepts(load, 300)
    await play({ trial, load })
    await accepts(load, 300)
    await within(load.stop(), 60_000, 'the writers do not end')
  })
  const pauseMs = longestPause(trial.history)
  await trial.judge()
  const duplicates = duplicatesByFault(trial.history)
  const { selfEnds } = trial
  return {
    accepted: load.accepted,
    duplicates,
    selfEnds,
    pauseMs,
    takeOverMs: longestOver(trial.history, releases, goesOn),
    handOverMs: longestOver(trial.history, seals, seals),
  }
}

interface Row {
  /** What it shows, as the table of the README has it. */
  readonly title: string
  readonly play?: (context: RowContext) => Promise<void>
  /** Instead of `play`, on servers that can be cut off from each other. */
  readonly parted?: (context: RowContext, brokers: PartedBrokers) => Promise<void>
  readonly options?: Pick<ClusterTrialOptions, 'actors' | 'brokers' | 'shards' | 'programs'>
}

export const ROWS: Readonly<Record<string, Row>> = {
  5: {
    title: 'the broker stands still for 12 s and is killed three times: 503, then all goes on',
    play: brokerAway,
  },
  8: {
    title: 'each owner stands still for three leases: others take over, and it writes nothing',
    play: ownerStandsStill,
  },
  9: {
    title: 'an owner is cut off, in each direction: once others own its shards it sends nothing',
    play: ownerCutOff,
  },
  11: { title: 'twenty quick joins and leaves: nothing comes twice', play: joinsAndLeaves },
  12: {
    title: 'a rolling restart of every node: nothing comes twice, and no webhook fails',
    play: rollingRestart,
  },
  13: {
    title: 'Postgres is away: webhooks are refused, deliveries go on, dead letters wait',
    play: databaseAway,
  },
  20: {
    title: 'the leaders of inboxes and journals are killed in their turn: all goes on',
    play: leadersKilled,
    options: { brokers: 3 },
  },
  25: {
    title:
      'an ingress stands still past its lease, and its statements are cut twenty times: credits are right',
    play: ingressStandsStill,
  },
  26: {
    title: 'one of three servers is cut off during snapshots and claims: nothing is lost',
    parted: serverCutOff,
    options: { programs: { actor: 'test/faults/keeping-actor.ts' } },
  },
}

async function brokerAway({ trial, load }: RowContext): Promise<void> {
  const { unavailable } = load
  // Requests wait for it for up to 10 s.
  await healedAfter(trial, perform(trial, { kind: 'broker-freeze', target: 'nats', holdMs: 12_000 }))
  expect(load.unavailable, 'requests were refused meanwhile').to.be.above(unavailable)
  for (let kill = 0; kill < 3; kill++) {
    await accepts(load, 100)
    await healedAfter(trial, perform(trial, { kind: 'broker-kill', target: 'nats', holdMs: 0 }))
  }
}

/** Its shards run elsewhere while it stands still; what it does afterwards is refused. */
async function ownerStandsStill({ trial, load }: RowContext): Promise<void> {
  for (const place of [...trial.placesOf('actor')]) {
    await accepts(load, 200)
    const fault = trial.beginFault(`freeze ${place.name}`, true)
    place.freeze()
    await Promise.all([eventually(() => othersRunAll(trial, place), WAIT), delay(LONG_MS)])
    place.thaw()
    release(fault)
    await trial.untilHealed()
    fault.to = Date.now()
  }
}

/** It gives up by itself: once others own its shards, it sends nothing any more. */
async function ownerCutOff({ trial, load }: RowContext): Promise<void> {
  for (const direction of ['both', 'up', 'down'] as const) {
    const place = await trial.ownerOf(0)
    const fault = trial.beginFault(`nats-${direction} ${place.name}`)
    if (direction === 'both') place.nats!.blackhole()
    else place.nats!.silence(direction)
    await eventually(() => othersRunAll(trial, place), WAIT)
    const sent = await deliveriesOf(place)
    expect(sent, 'it had delivered').to.be.above(0)
    await accepts(load, 300)
    expect(await deliveriesOf(place), 'it sends nothing').to.equal(sent)
    place.nats!.heal()
    await trial.untilHealed()
    fault.to = Date.now()
  }
}

/** Twenty of them, one after the other, in good order: nothing comes twice, and a joiner takes its part at most. */
async function joinsAndLeaves({ trial }: RowContext): Promise<void> {
  const joiner = await trial.addPlace('actor')
  const most = Math.ceil((1.25 * trial.options.shards!) / trial.placesOf('actor').length)
  for (let time = 0; time < 20; time++) {
    await joiner.start()
    // Every other one leaves at once, perhaps before it has anything.
    if (time % 2 === 0) await eventually(async () => (await joiner.shards()).length > 0, WAIT)
    expect((await joiner.shards()).length).to.be.at.most(most)
    expect(await joiner.end('SIGTERM')).to.equal(0)
  }
  await trial.untilHealed()
}

/** No fault stands in the history, so whatever comes twice is a breach. No webhook fails that was begun. */
async function rollingRestart({ trial, load }: RowContext): Promise<void> {
  const before = trial.history.sent.length
  for (const { name } of [...trial.places]) {
    await perform(trial, { kind: 'restart', target: name, holdMs: 0 })
    await trial.untilHealed()
    await accepts(load, 50)
  }
  const failed = trial.history.sent
    .slice(before)
    .filter(({ answer }) => answer === null || answer.status >= 500)
  expect(failed).to.deep.equal([])
}

/** Webhooks are refused; what is buffered is delivered; dead letters wait. */
async function databaseAway({ trial, load }: RowContext): Promise<void> {
  const { unavailable } = load
  await trial.createBuffer('waiting', { batch: { idleTimeoutMs: 5_000, maxWaitFromFirstMs: 5_000 } })
  await trial.createBuffer('dying', { batch: { idleTimeoutMs: 5_000, maxWaitFromFirstMs: 5_000 } })
  for (let group = 0; group < 20; group++)
    for (const [bufferId, kind] of [
      ['waiting', 'ok'],
      ['dying', 'reject'],
    ] as const)
      await trial.sender.send({ bufferId, groupKey: `${kind}-row13-${group}` })
  const fault = trial.beginFault('postgres-away')
  for (const { postgres } of trial.places) postgres.blackhole()
  const groupsOf = (bufferId: string) =>
    new Set(
      trial.history.deliveries.filter((each) => each.bufferId === bufferId).map(({ groupKey }) => groupKey),
    )
  await eventually(() => groupsOf('waiting').size === 20 && groupsOf('dying').size > 0, WAIT)
  await eventually(() => load.unavailable > unavailable, WAIT)
  for (const { postgres } of trial.places) postgres.heal()
  await trial.untilHealed()
  fault.to = Date.now()
  await eventually(async () => {
    await trial.enable('dying')
    return (await trial.api.deadLetters('dying')).length === 20
  }, WAIT)
}

/** The servers that lead an inbox and a journal, each in its turn. */
async function leadersKilled({ trial, load }: RowContext): Promise<void> {
  for (const stream of ['INBOX_0', 'JOURNAL_0', 'INBOX_1', 'JOURNAL_1']) {
    await accepts(load, 200)
    const leader = await eventually(() => leaderOf(trial, stream), WAIT)
    await healedAfter(trial, perform(trial, { kind: 'broker-kill', target: leader, holdMs: 0 }))
  }
}

/** Longer than its lease lives: others refund what it had open, so it must end; and connections cut in statements. */
async function ingressStandsStill({ trial, load }: RowContext): Promise<void> {
  const [gate] = trial.placesOf('ingress')
  await healedAfter(trial, perform(trial, { kind: 'freeze', target: gate!.name, holdMs: LONG_MS }))
  await eventually(
    () => trial.selfEnds.some(({ why }) => why.includes('ledger of this node was closed')),
    WAIT,
  )
  await trial.untilHealed()
  const fault = trial.beginFault('postgres-reset')
  for (let cut = 0; cut < 20; cut++) {
    await accepts(load, 20)
    for (const { postgres } of trial.placesOf('ingress')) {
      // What is on its way is answered nowhere.
      postgres.silence(cut % 2 === 0 ? 'up' : 'down')
      await eventually(() => postgres.underWay > 0, WAIT)
      postgres.reset()
      postgres.heal()
    }
  }
  await trial.untilHealed()
  fault.to = Date.now()
}

async function healedAfter(trial: ClusterTrial, faulty: Promise<Fault | null>): Promise<void> {
  const fault = await faulty
  await trial.untilHealed()
  if (fault) fault.to = Date.now()
}

async function othersRunAll(trial: ClusterTrial, place: NodePlace): Promise<boolean> {
  const others = trial.placesOf('actor').filter((other) => other !== place && other.wanted)
  const running = await Promise.all(others.map((other) => other.shards()))
  return new Set(running.flat()).size === trial.options.shards
}

/** Batches that this node delivered. */
async function deliveriesOf(place: NodePlace): Promise<number> {
  return readMetrics(await place.metrics(), 'penstock_deliveries_total')
}
