/** Where several processes take requests on one port, each learns of a change in its own time; and who asks cannot choose. */
import { Agent, request } from 'undici'
import { eventually } from './eventually.ts'
import { inSeveralProcesses } from './shape.ts'

/** Connections of their own: that all of them go to one of two processes is a chance of one in 32,768. */
const CONNECTIONS = 16

export interface Probed {
  readonly status: number
  readonly text: string
}

interface Probe {
  readonly method: 'GET' | 'POST'
  readonly body?: string
  readonly headers?: Record<string, string>
}

/** A webhook that no buffer takes, and that changes nothing: its body is no JSON. */
const NO_WEBHOOK: Probe = { method: 'POST', body: 'no JSON' }

/** Resolves once every process that takes requests answers a probe of this address so. At once with one process. */
export async function untilAllAnswer(
  url: string,
  wanted: (probed: Probed) => boolean,
  probe: Probe = NO_WEBHOOK,
  patience: { timeoutMs?: number } = {},
): Promise<void> {
  if (!inSeveralProcesses) return
  await eventually(async () => {
    const probed = await Promise.all(Array.from({ length: CONNECTIONS }, () => send(url, probe)))
    return probed.every(wanted)
  }, patience)
}

async function send(url: string, probe: Probe): Promise<Probed> {
  const dispatcher = new Agent()
  try {
    const { statusCode, body } = await request(url, { ...probe, dispatcher })
    return { status: statusCode, text: await body.text() }
  } finally {
    await dispatcher.close()
  }
}

/** What one process knows at once, several know a moment later. */
export async function onceKnown(check: () => Promise<unknown>): Promise<void> {
  if (inSeveralProcesses) await eventually(async () => void (await check()))
  else await check()
}
