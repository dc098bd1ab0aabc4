/** Cuts one direction of a NATS connection into protocol frames. */

export interface Frame {
  /** `PUB`, `HPUB`, `MSG`, `HMSG`; or any other verb, whose frame is one line. */
  readonly verb: string
  readonly subject: string
  /** Empty when the message names none. */
  readonly reply: string
  readonly payload: Buffer
  /** The whole frame as it came. */
  readonly raw: Buffer
}

/** Where reply and sizes stand in the line of a message: PUB and HPUB have no subscription id. */
const ARGUMENTS: Record<string, { reply: number; sizes: number }> = {
  PUB: { reply: 2, sizes: 1 },
  HPUB: { reply: 2, sizes: 2 },
  MSG: { reply: 3, sizes: 1 },
  HMSG: { reply: 3, sizes: 2 },
}

const EMPTY = Buffer.alloc(0)

export class FrameReader {
  #rest: Buffer = EMPTY

  /** The frames that are complete now. */
  push(chunk: Buffer): Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: Frame[] = []
    for (let frame = readFrame(this.#rest); frame; frame = readFrame(this.#rest)) {
      this.#rest = this.#rest.subarray(frame.raw.length)
      frames.push(frame)
    }
    return frames
  }
}

function readFrame(bytes: Buffer): Frame | null {
  const lineEnd = bytes.indexOf('\r\n')
  if (lineEnd < 0) return null
  const words = bytes.toString('latin1', 0, lineEnd).split(/\s+/)
  const verb = (words[0] ?? '').toUpperCase()
  const at = ARGUMENTS[verb]
  if (!at) return { verb, subject: '', reply: '', payload: EMPTY, raw: bytes.subarray(0, lineEnd + 2) }
  const total = Number(words.at(-1))
  const headers = at.sizes === 2 ? Number(words.at(-2)) : 0
  const end = lineEnd + 2 + total + 2
  if (bytes.length < end) return null
  const hasReply = words.length > at.reply + at.sizes
  return {
    verb,
    subject: words[1] ?? '',
    reply: hasReply ? (words[at.reply] ?? '') : '',
    payload: bytes.subarray(lineEnd + 2 + headers, lineEnd + 2 + total),
    raw: bytes.subarray(0, end),
  }
}
