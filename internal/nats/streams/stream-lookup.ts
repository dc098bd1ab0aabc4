/**
 * Looking at a stream of the broker, and what its refusals mean. JetStream answers late, or not at all, while a stream
 * has no leader or is just being made.
 */

import { ErrorCode, type JetStreamManager, NatsError, type StreamConfig, type StreamInfo } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import { messageOf } from '../../runtime/thrown.ts'
import { UnusableBrokerError } from '../connection.ts'
import { STREAM_NOT_FOUND } from './stream-api.ts'

export const NAME_IN_USE = 10058
/** Storage or account limits, whichever the broker meets first. */
export const tooLarge: ReadonlySet<number> = new Set([10002, 10005, 10023, 10028, 10047])

const TEMPORARILY_UNAVAILABLE = 10008
/** The store of a stream cannot be created. */
const NOT_CREATED = 10049
/** With a pause after each. */
const MOST_ATTEMPTS = 10

/** How long a stream without leader is waited for at the start, ms. */
const LEADER_WAIT_MS = 15_000
const PAUSE_MS = 250

/** Another node is making the streams at this moment, and not every server knows of all of them. */
export class UnsettledError extends Error {}

/** undefined: there is none. Waits for a leader: a stream that exists and does not answer is not a missing one. */
export async function lookUp(
  manager: JetStreamManager,
  clock: Clock,
  name: string,
): Promise<StreamInfo | undefined> {
  const deadline = clock.monotonic() + LEADER_WAIT_MS
  for (;;) {
    try {
      return await manager.streams.info(name)
    } catch (cause) {
      if (codeOf(cause) === STREAM_NOT_FOUND) return undefined
      if (clock.monotonic() > deadline) {
        throw new UnusableBrokerError(`stream ${name} exists, but does not answer: ${messageOf(cause)}`, {
          cause,
        })
      }
      await pause(clock)
    }
  }
}

/** Nobody answered in time, or what was asked for is under way. */
export function mayPass(error: unknown): boolean {
  if (error instanceof UnsettledError || codeOf(error) === TEMPORARILY_UNAVAILABLE) return true
  return error instanceof NatsError && error.code === ErrorCode.Timeout
}

/** Before the broker is asked once more. */
export function pause(clock: Clock): Promise<void> {
  return sleep(clock, PAUSE_MS)
}

/**
 * Makes a stream. The broker answers a deletion before its folders are gone, and their removal may take the folder of a
 * stream that is made right behind it. It then tells that the store cannot be created, and the next attempt succeeds.
 */
export async function addStream(
  manager: JetStreamManager,
  clock: Clock,
  config: Partial<StreamConfig> & { name: string },
): Promise<StreamInfo> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await manager.streams.add(config)
    } catch (cause) {
      if (codeOf(cause) !== NOT_CREATED || attempt === MOST_ATTEMPTS) throw cause
    }
    await pause(clock)
  }
}

/** JetStream's error code, undefined for what is no answer of it. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined
}
