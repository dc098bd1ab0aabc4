/**
 * Serves a block device over a socket as a network block device: the newstyle handshake, and reads, writes and flushes with
 * simple replies (the NBD protocol, "Transmission phase"). What qemu asks for beyond these is refused, as the protocol allows.
 */
import type { Socket } from 'node:net'

export interface BlockDevice {
  /** Bytes. */
  readonly size: number
  read(offset: number, length: number): Buffer
  write(offset: number, data: Buffer): void
  /** Everything written before is to outlive a power cut. */
  flush(): void
}

const GREETING = 'NBDMAGIC'
const OPTION_MAGIC = Buffer.from('IHAVEOPT')
/** Fixed newstyle, without the zeroes that once followed the export. */
const HANDSHAKE_FLAGS = 1 | 2
const OPTION_REPLY_MAGIC = 0x3e889045565a9n
const OPTION = { abort: 2, info: 6, go: 7 } as const
const OPTION_REPLY = { acknowledged: 1, info: 3, unsupported: 0x80000001 } as const
const INFO_EXPORT = 0
/** It has flags, and it takes flushes. */
const TRANSMISSION_FLAGS = 1 | 4
const REQUEST_MAGIC = 0x25609513
const REPLY_MAGIC = 0x67446698
const COMMAND = { read: 0, write: 1, disconnect: 2, flush: 3 } as const
const REQUEST_BYTES = 28
const INVALID = 22

/** Resolves when the client is gone. Rejects when it does not speak the protocol. */
export async function serveBlocks(socket: Socket, device: BlockDevice): Promise<void> {
  const input = new Input(socket)
  try {
    if (await shakeHands(socket, input, device)) await transmit(socket, input, device)
  } catch (error) {
    if (!(error instanceof ClientGoneError)) throw error
  } finally {
    socket.destroy()
  }
}

/** Whether the client goes on to the blocks. */
async function shakeHands(socket: Socket, input: Input, device: BlockDevice): Promise<boolean> {
  socket.write(Buffer.concat([Buffer.from(GREETING), OPTION_MAGIC, uint16(HANDSHAKE_FLAGS)]))
  await input.read(4)
  for (;;) {
    const head = await input.read(16)
    if (!head.subarray(0, 8).equals(OPTION_MAGIC)) throw new Error('an option without its magic')
    const option = head.readUInt32BE(8)
    await input.read(head.readUInt32BE(12))
    if (option === OPTION.abort) return false
    const known = option === OPTION.go || option === OPTION.info
    if (known) socket.write(optionReply(option, OPTION_REPLY.info, exportInfo(device)))
    socket.write(optionReply(option, known ? OPTION_REPLY.acknowledged : OPTION_REPLY.unsupported))
    if (option === OPTION.go) return true
  }
}

function exportInfo({ size }: BlockDevice): Buffer {
  return Buffer.concat([uint16(INFO_EXPORT), uint64(BigInt(size)), uint16(TRANSMISSION_FLAGS)])
}

function optionReply(option: number, type: number, data: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([uint64(OPTION_REPLY_MAGIC), uint32(option), uint32(type), uint32(data.length), data])
}

async function transmit(socket: Socket, input: Input, device: BlockDevice): Promise<void> {
  for (;;) {
    const request = await input.read(REQUEST_BYTES)
    if (request.readUInt32BE(0) !== REQUEST_MAGIC) throw new Error('a request without its magic')
    const [command, cookie] = [request.readUInt16BE(6), request.subarray(8, 16)]
    const [offset, length] = [Number(request.readBigUInt64BE(16)), request.readUInt32BE(24)]
    if (command === COMMAND.disconnect) return
    const data = command === COMMAND.write ? await input.read(length) : Buffer.alloc(0)
    const answer = carryOut(device, command, offset, length, data)
    const head = [uint32(REPLY_MAGIC), uint32(answer === null ? INVALID : 0), cookie]
    socket.write(Buffer.concat([...head, ...(answer === null ? [] : [answer])]))
  }
}

/** What follows the head of the reply; null: there is no such command. */
function carryOut(
  device: BlockDevice,
  command: number,
  offset: number,
  length: number,
  data: Buffer,
): Buffer | null {
  if (command === COMMAND.read) return device.read(offset, length)
  if (command === COMMAND.write) device.write(offset, data)
  else if (command === COMMAND.flush) device.flush()
  else return null
  return Buffer.alloc(0)
}

class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError'
}

/** Bytes of a socket, as many as one asks for. */
class Input {
  #chunks: Buffer[] = []
  #bytes = 0
  #ended = false
  #wake = () => {}

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#bytes += chunk.length
      this.#wake()
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#ended = true
      this.#wake()
    })
  }

  async read(length: number): Promise<Buffer> {
    while (this.#bytes < length) {
      if (this.#ended) throw new ClientGoneError('the client is gone')
      await new Promise<void>((wake) => {
        this.#wake = wake
      })
    }
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    this.#chunks = all.length === length ? [] : [all.subarray(length)]
    this.#bytes -= length
    return all.subarray(0, length)
  }
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}
