/** One installation under faults: the real service, its senders and destination, and the judgement at the end. */
import { join } from 'node:path'

import type { BufferFields } from '../support/api.ts'
import { eventually, untilNone } from '../support/eventually.ts'
import { NatsProxy, type Struck, type Which } from '../support/nats-proxy.ts'
import { seededFractions } from '../support/seeded.ts'
import { freshDatabase, ownNats } from '../support/servers.ts'
import { createInstallation, type Installation, untilHealthy } from '../support/service.ts'
import { inSeveralProcesses } from '../support/shape.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { readDatabase, readLeftDatabase } from './aftermath.ts'
import { type BufferPatch, Buffers } from './buffers.ts'
import { check } from './checker.ts'
import { Destination } from './destination.ts'
import { Evidence } from './evidence.ts'
import { type Fault, type History, keepFailure, newHistory } from './history.ts'
import { noteStalls } from './stalls.ts'
import { embeddedNatsUrl, StoredLogs } from './stored-logs.ts'
import { Sender } from './webhooks.ts'

const CREDITS = 10_000_000
const PROJECT = 'faults'
const SHARDS = 2
/** A group whose destination fails gives out a batch of one item in seconds, and may have dozens of them. */
const DRAINING = { stillMs: 40_000, timeoutMs: 240_000, everyMs: 100 }

export interface TrialOptions {
  readonly label: string
  readonly seed: number
  /** `embedded`: in the data folder, left behind by a kill. `own`: servers beside the service, NATS behind a proxy. */
  readonly servers: 'embedded' | 'own'
  /** Of the own NATS; default 2m: enough when it is not killed. */
  readonly sync?: string
  /** See `ServiceOptions.program`. */
  readonly program?: string
  readonly dataDir?: string
}

/** Servers beside the service. */
export interface OwnServers {
  readonly nats: Awaited<ReturnType<typeof ownNats>>
  /** Folder of that NATS. */
  readonly dir: string
  readonly proxy: NatsProxy
  readonly databaseUrl: string
}

export class Trial {
  readonly options: TrialOptions
  readonly installation: Installation
  readonly own: OwnServers | null
  readonly history: History
  readonly random: () => number
  readonly sender: Sender
  readonly destination: Destination
  readonly buffers: Buffers
  readonly #endStalls: () => void
  #url = ''
  #down: Fault | null = null

  private constructor(
    options: TrialOptions,
    own: OwnServers | null,
    installation: Installation,
    more: Pick<Trial, 'history' | 'random' | 'destination'>,
  ) {
    this.options = options
    this.own = own
    this.installation = installation
    this.history = more.history
    this.random = more.random
    this.destination = more.destination
    this.sender = new Sender(more.history, (bufferId) => `${this.#url}/v1/ingest/${PROJECT}/${bufferId}`)
    this.buffers = new Buffers({
      history: more.history,
      api: () => installation.api(),
      projectId: PROJECT,
      deliverTo: () => more.destination.url,
    })
    this.#endStalls = noteStalls(more.history.stalls)
  }

  /** A new installation with a running service and no buffer. */
  static async open(options: TrialOptions): Promise<Trial> {
    const own = options.servers === 'own' ? await openServers(options.sync) : null
    const installation = await createInstallation({
      ...(options.program !== undefined && { program: options.program }),
      ...(options.dataDir !== undefined && { dataDir: options.dataDir }),
      env: {
        PENSTOCK_LOG_LEVEL: 'warn',
        PENSTOCK_INITIAL_CREDITS: String(CREDITS),
        PENSTOCK_SHARDS: String(SHARDS),
        ...(own && {
          PENSTOCK_NATS_URL: own.proxy.through(own.nats.url),
          PENSTOCK_DATABASE_URL: own.databaseUrl,
          PENSTOCK_SYNC: 'always',
        }),
      },
    })
    const shape = inSeveralProcesses && options.program === undefined ? 'several processes' : 'one process'
    const [history, random] = [newHistory({ shards: SHARDS, shape }), seededFractions(options.seed)]
    const isListening = () => trial.#down === null
    const destination = await Destination.open(history, random, isListening)
    const trial: Trial = new Trial(options, own, installation, { history, random, destination })
    await trial.start()
    await installation.api().createProject(PROJECT)
    return trial
  }

  /** See `Buffers.create`. */
  createBuffer(bufferId: string, fields: Partial<BufferFields> = {}): Promise<void> {
    return this.buffers.create(bufferId, fields)
  }

  /** See `Buffers.patch`: a buffer that is changed past it is judged by what it was told before. */
  patchBuffer(bufferId: string, patch: BufferPatch): Promise<void> {
    return this.buffers.patch(bufferId, patch)
  }

  /** Enables a buffer that its dead letters disabled. Never rejects: the service may be down, its caller comes again. */
  async enable(bufferId: string): Promise<void> {
    await this.buffers.enable(bufferId).catch(() => {})
  }

  /** Resolves when the service is healthy; the fault that ended it is over then. */
  async start(): Promise<void> {
    await this.spawn()
    const { service } = this.installation
    await untilHealthy(service).catch((error: unknown) => {
      throw this.failure([{ rule: 'start', detail: String(error).slice(-600) }])
    })
    this.#url = service.url
  }

  /** Resolves when the service answers, whatever its health. */
  async startUnhealthy(): Promise<void> {
    await this.spawn()
    const { service } = this.installation
    await eventually(async () => (await fetch(`${service.url}/health`)).ok || true, { timeoutMs: 60_000 })
    this.#url = service.url
  }

  /** The process runs, and nothing more. */
  async spawn(): Promise<void> {
    await this.installation.spawn()
    if (this.#down) this.#down.to = Date.now()
    this.#down = null
  }

  /** SIGKILL of the service, all its processes, without its servers. Repeating it is harmless. */
  kill(): void {
    if (this.#down) return
    this.installation.kill()
    this.#down = this.beginFault('kill')
  }

  /** Resolves when the killed process is gone. */
  async gone(): Promise<void> {
    await this.installation.service.exited()
  }

  /**
   * Kills the service at a message (see `NatsProxy.strikeAt`) that `provoke` brings about, and waits for its
   * end. `meanwhile` runs before the kill: the service waits for that message, and all else goes on.
   */
  async killAt(
    when: 'before' | 'after',
    which: Which,
    provoke: () => unknown,
    meanwhile?: () => Promise<unknown>,
  ): Promise<Struck> {
    const kill = () => this.kill()
    const strike = meanwhile ? () => meanwhile().then(kill, kill) : kill
    const struck = this.own!.proxy.strikeAt(when, which, strike)
    await provoke()
    const result = await within(struck, 40_000, `nothing was struck ${when} the message`)
    await this.gone()
    return result
  }

  /** Not over before its `to` is set. */
  beginFault(kind: string): Fault {
    const fault = { kind, from: Date.now(), to: Number.POSITIVE_INFINITY }
    this.history.faults.push(fault)
    return fault
  }

  /** Resolves when everything accepted has arrived and the logs hold nothing that is open; rejects when they stand still. */
  async drain(): Promise<void> {
    await untilNone(() => this.#unseen(), DRAINING)
    await this.readLogs((logs) => untilNone(() => logs.openItems(), DRAINING))
  }

  /** Drains, ends the service, reads what is left behind, and judges; rejects with every breach. */
  async judge(): Promise<void> {
    const undrained = await this.drain().then(
      () => null,
      (error: unknown) => error,
    )
    await this.readLogs(async (logs) => {
      this.history.buffered = await logs.openItems()
      this.history.commits = await logs.commits()
    })
    const code = await this.installation.stop()
    if (this.own) await readDatabase(this.history, this.own.databaseUrl, CREDITS)
    else await readLeftDatabase(this.history, this.installation.dataDir, CREDITS)
    const problems = [
      ...check(this.history),
      ...(code === 0 ? [] : [{ rule: 'exit', detail: code }]),
      ...(undrained === null ? [] : [{ rule: 'drain', detail: String(undrained) }]),
    ]
    if (problems.length > 0) throw this.failure(problems)
  }

  /** The logs as they stand at the broker, past proxy and service. */
  async readLogs(read: (logs: StoredLogs) => Promise<unknown>): Promise<void> {
    const logs = await StoredLogs.open(
      this.own?.nats.url ?? embeddedNatsUrl(this.installation.dataDir),
      SHARDS,
    )
    try {
      await read(logs)
    } finally {
      await logs.close()
    }
  }

  /** An error that says where the history is kept. */
  failure(problems: readonly { rule: string; detail: unknown }[]): Error {
    return keepFailure(this.options, this.history, problems, this.installation.output())
  }

  async close(): Promise<void> {
    this.#endStalls()
    await this.installation.stop('SIGKILL')
    await Promise.all([this.sender.close(), this.destination.close(), this.own?.proxy.close()])
    await this.own?.nats.stop()
  }

  /** What has not arrived yet; a buffer that its dead letters disabled is enabled again. */
  async #unseen(): Promise<number> {
    for (const bufferId of this.buffers.ids) await this.enable(bufferId)
    return new Evidence(this.history).unseen
  }
}

async function openServers(sync = '2m'): Promise<OwnServers> {
  const dir = join(tempFolder('trial-nats'), 'nats')
  const nats = await ownNats({ sync, dir })
  return { nats, dir, proxy: await NatsProxy.to(nats.port), databaseUrl: await freshDatabase() }
}

export async function within<T>(work: Promise<T>, ms: number, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
