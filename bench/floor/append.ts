/** Durable appends in packs, one of them in flight: whoever comes meanwhile shares the next. */
import { connect, createInbox } from 'nats'

interface Waiting {
  raw: Buffer
  settle: (stored: boolean) => void
}

const { username: user, password: pass, host } = new URL(process.env.NATS_URL ?? '')
const nats = await connect({ servers: host, user, pass })
await (await nats.jetstreamManager()).streams.add({ name: 'FLOOR', subjects: ['floor'] })
const reply = createInbox()
const newline = Buffer.from('\n')
let waiting: Waiting[] = []
let flying: Waiting[] = []

nats.subscribe(reply, {
  callback: (_error, message) => {
    const stored = JSON.parse(message.string()).error === undefined
    for (const { settle } of flying.splice(0)) settle(stored)
    send()
  },
})

function send(): void {
  if (flying.length > 0 || waiting.length === 0) return
  flying = waiting
  waiting = []
  nats.publish('floor', Buffer.concat(flying.flatMap(({ raw }) => [raw, newline])), { reply })
}

/** Whether it is stored. */
export function append(raw: Buffer): Promise<boolean> {
  return new Promise((settle) => {
    waiting.push({ raw, settle })
    send()
  })
}
