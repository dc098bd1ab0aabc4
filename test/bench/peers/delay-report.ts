/** Loaded into the service under measurement (`--import`): tells how late its event loop was since it was last asked. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

export const DELAY_QUESTION = 'delay'

/** Ms beyond the timer's own time. */
export interface Delay {
  p50: number
  p99: number
  max: number
}

const RESOLUTION_MS = 1

// The one who asks reads the names above from the same file, and has no channel.
if (process.channel) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  process.on('message', (question: unknown) => {
    if (question !== DELAY_QUESTION) return
    // Nanoseconds between two ticks of a timer.
    const ms = (nanoseconds: number) => nanoseconds / 1e6 - RESOLUTION_MS
    const delay: Delay = {
      p50: ms(delays.percentile(50)),
      p99: ms(delays.percentile(99)),
      max: ms(delays.max),
    }
    delays.reset()
    process.send!(delay)
  })
  process.channel.unref()
}
