/** The load programs, ready to be asked. */
import type { ClientAnswers, ClientQuestion } from './client.ts'
import type { GeneratorAnswers, GeneratorQuestion } from './generator.ts'
import { Program } from './program.ts'
import type { SinkAnswers, SinkQuestion } from './sink.ts'
import type { WatchAnswers, WatchQuestion } from './watch.ts'

export type Generator = Program<GeneratorQuestion, GeneratorAnswers>
export type Client = Program<ClientQuestion, ClientAnswers>
export type Sink = Program<SinkQuestion, SinkAnswers>
export type Watch = Program<WatchQuestion, WatchAnswers>

export function startGenerator(): Generator {
  return new Program('generator.ts')
}

/** The client of the management API. */
export function startClient(): Client {
  return new Program('client.ts')
}

/** A sink and the address that it listens on. */
export async function startSink(): Promise<{ sink: Sink; url: string }> {
  const sink: Sink = new Program('sink.ts')
  return { sink, ...(await sink.ask({ kind: 'listen' })) }
}

/** Of the machine's own pauses. */
export function startWatch(): Watch {
  return new Program('watch.ts')
}
