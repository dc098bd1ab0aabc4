/**
 * A server that this process runs: started, stopped, started again on the same data and port. Restarted when
 * it dies by itself, a few times: the clients reconnect to the same address, and the logs tell what they hold.
 */
import { setTimeout as delay } from 'node:timers/promises'

import type { EmbeddedLog } from './ports.ts'
import type { ServerProcess, StopStep } from './server-process.ts'

/** More than these restarts within the window, and the server is given up. */
const RESTARTS = 3
const RESTART_WINDOW_MS = 60_000

export interface EmbeddedServerSpec {
  name: string
  log: EmbeddedLog
  /** Starts the process and resolves once it answers. */
  launch(): Promise<ServerProcess>
  stopping: StopStep[]
}

export class EmbeddedServer {
  #spec: EmbeddedServerSpec
  #process: ServerProcess
  #stopped = false
  #restarts: number[] = []
  #onLost: ((error: Error) => void) | undefined
  #watching: Promise<void> = Promise.resolve()

  private constructor(spec: EmbeddedServerSpec, process: ServerProcess) {
    this.#spec = spec
    this.#process = process
  }

  static async start(spec: EmbeddedServerSpec): Promise<EmbeddedServer> {
    const started = performance.now()
    const server = new EmbeddedServer(spec, await spec.launch())
    spec.log.info(
      { server: spec.name, pid: server.pid, ms: Math.round(performance.now() - started) },
      'server started',
    )
    return server
  }

  get pid(): number {
    return this.#process.pid
  }

  get running(): boolean {
    return this.#process.running
  }

  /** How the process that runs now ends. Never rejects. */
  get exited(): Promise<string> {
    return this.#process.exited
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Ends the process that runs now, which is then restarted as any that ends unasked. Resolves when it is gone. */
  end(): Promise<void> {
    return this.#process.stop(this.#spec.stopping)
  }

  /** Ends the process for good (until `restart`); resolves when it is gone. Repeating it is harmless. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#process.kill('SIGCONT')
    await this.#process.stop(this.#spec.stopping)
    await this.#watching
  }

  /** Stops it when it runs, and starts it on the same data and port. */
  async restart(): Promise<void> {
    await this.stop()
    this.#process = await this.#spec.launch()
    this.#stopped = false
    if (this.#onLost !== undefined) this.keepRunning(this.#onLost)
  }

  /** Restarts it whenever it ends unasked; `onLost` when that does not help: the caller must then stop. */
  keepRunning(onLost: (error: Error) => void): void {
    this.#onLost = onLost
    this.#watching = this.#watch(onLost).catch((error: unknown) => {
      onLost(new Error(`${this.#spec.name} cannot be restarted`, { cause: error }))
    })
  }

  async #watch(onLost: (error: Error) => void): Promise<void> {
    for (;;) {
      const ended = await this.#process.exited
      if (this.#stopped) return
      this.#spec.log.error({ server: this.#spec.name, pid: this.pid, ended }, 'embedded server died')
      if (!this.#mayRestart()) {
        onLost(new Error(`${this.#spec.name} keeps dying (${ended})`))
        return
      }
      await delay(100 * this.#restarts.length)
      if (this.#stopped) return
      const next = await this.#spec.launch()
      if (this.#stopped) {
        await next.stop(this.#spec.stopping)
        return
      }
      this.#process = next
      this.#spec.log.info({ server: this.#spec.name, pid: next.pid }, 'embedded server restarted')
    }
  }

  #mayRestart(): boolean {
    const now = performance.now()
    this.#restarts = [...this.#restarts.filter((at) => now - at < RESTART_WINDOW_MS), now]
    return this.#restarts.length <= RESTARTS
  }
}
