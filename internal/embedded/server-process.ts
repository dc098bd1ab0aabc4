/**
 * One child process of an embedded server. It runs in a session of its own, so that Ctrl-C in a terminal
 * reaches the main process alone, which drains before it stops its servers in order.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

import { commandLine, findProcesses, isRunning } from './process-identity.ts'

/** A signal, and how long it is waited for, ms, before the next one. */
export interface StopStep {
  signal: NodeJS.Signals
  waitMs: number
}

export interface Launch {
  command: string
  args: string[]
  cwd: string
  env?: NodeJS.ProcessEnv
  uid?: number
  gid?: number
  /** Standard error and output are appended here: a pipe would break when the main process dies first. */
  logFile: string
}

export class ServerProcess {
  readonly pid: number
  /** Resolves with how it ended: `exit code 1` or `signal SIGKILL`. Never rejects. */
  readonly exited: Promise<string>
  #child: ChildProcess
  #ended = false

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child
    this.pid = pid
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#ended = true
        resolve(signal === null ? `exit code ${code}` : `signal ${signal}`)
      })
    })
  }

  /** Rejects when the command cannot be executed at all. */
  static async launch(launch: Launch): Promise<ServerProcess> {
    const log = openSync(launch.logFile, 'a', 0o600)
    try {
      const child = spawn(launch.command, launch.args, {
        cwd: launch.cwd,
        env: launch.env ?? process.env,
        detached: true,
        stdio: ['ignore', log, log],
        ...(launch.uid === undefined ? {} : { uid: launch.uid, gid: launch.gid }),
      })
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve)
        child.once('error', reject)
      })
      return new ServerProcess(child, child.pid!)
    } finally {
      closeSync(log)
    }
  }

  get running(): boolean {
    return !this.#ended
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.#ended) this.#child.kill(signal)
  }

  /** Signals in turn until it is gone; SIGKILL at last. */
  async stop(steps: StopStep[]): Promise<void> {
    for (const step of steps) {
      if (this.#ended) return
      this.kill(step.signal)
      const timer = new AbortController()
      await Promise.race([this.exited, delay(step.waitMs, undefined, { signal: timer.signal })])
      timer.abort()
    }
    this.kill('SIGKILL')
    await this.exited
  }
}

/**
 * Stops what a killed main process left behind: every process whose command line holds `marker`, an argument
 * that names a path of our data folder. Not by the server's own id file: a server has none while it starts,
 * and two on one folder would be worse than none. Returns the ids that were stopped.
 */
export async function stopOrphans(marker: string, steps: StopStep[]): Promise<number[]> {
  const orphans = findProcesses(marker)
  await Promise.all(orphans.map((pid) => stopOrphan(pid, marker, steps)))
  return orphans
}

async function stopOrphan(pid: number, marker: string, steps: StopStep[]): Promise<void> {
  for (const step of [...steps, { signal: 'SIGKILL' as const, waitMs: 5_000 }]) {
    // Asked again before every signal: the id may have passed on to another process meanwhile.
    if (!isOurs(pid, marker)) return
    process.kill(pid, step.signal)
    await gone(pid, step.waitMs)
  }
}

function isOurs(pid: number, marker: string): boolean {
  return commandLine(pid)?.includes(marker) === true
}

async function gone(pid: number, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs
  while (isRunning(pid) && performance.now() < end) await delay(20)
}
