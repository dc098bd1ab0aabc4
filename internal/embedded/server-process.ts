/**
 * One child process of an embedded server. It runs in a session of its own, so that Ctrl-C in a terminal
 * reaches the main process alone, which drains before it stops its servers in order.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

import { commandLine, isRunning } from './process-identity.ts'

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
 * Stops what a killed main process left behind. `pidFile` is the one that the server itself writes (first
 * line: its id); the process is only ours when its command line names `marker`, a path of our data folder.
 * Returns the id that was stopped.
 */
export async function stopOrphan(
  pidFile: string,
  marker: string,
  steps: StopStep[],
): Promise<number | undefined> {
  const pid = readPid(pidFile)
  if (pid === undefined || !isOurs(pid, marker)) return undefined
  for (const step of [...steps, { signal: 'SIGKILL' as const, waitMs: 5_000 }]) {
    // Asked again before every signal: the id may have passed on to another process meanwhile.
    if (!isOurs(pid, marker)) return pid
    process.kill(pid, step.signal)
    await gone(pid, step.waitMs)
  }
  return pid
}

function isOurs(pid: number, marker: string): boolean {
  return commandLine(pid)?.includes(marker) === true
}

async function gone(pid: number, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs
  while (isRunning(pid) && performance.now() < end) await delay(20)
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(path, 'utf8'), 10)
    return pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}
