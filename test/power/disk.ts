/**
 * The disk of a machine that loses its power. Its bytes are in a file of the host, which outlives the machine. What the
 * guest wrote and did not flush may still stand in the disk's own cache at a power cut:
 *
 *   whole   the cache is written out: all that the guest gave to the disk is on it
 *   torn    each sector of it holds any of what was written there since the last flush, or what stood there before
 *
 * What was flushed is always there.
 */
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'

import { type BlockDevice, serveBlocks } from './nbd.ts'

/** What a disk writes at once, bytes. */
export const SECTOR_BYTES = 512
/** A cache that is gone as a whole, rather than in parts. */
const ALL_LOST = 0.3

export type Cache = 'whole' | 'torn'

export interface DiskLoss {
  /** Sectors that were written and not flushed. */
  readonly unflushed: number
  /** Of these, those that do not hold what was written last. */
  readonly lost: number
}

export class PowerDisk implements BlockDevice {
  readonly size: number
  /** Of the socket where the machine finds it. */
  readonly path: string
  readonly #file: number
  readonly #cache: Cache
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** By sector: what a flush made sure of, and all that was written there since, in order. */
  readonly #unflushed = new Map<number, Buffer[]>()

  private constructor(image: string, path: string, cache: Cache) {
    this.#file = openSync(image, 'r+')
    this.size = fstatSync(this.#file).size
    this.path = path
    this.#cache = cache
    this.#server = createServer((socket) => this.#serve(socket))
  }

  /** `image`: its bytes. `path`: of the socket, which is made. */
  static async open(image: string, path: string, cache: Cache): Promise<PowerDisk> {
    const disk = new PowerDisk(image, path, cache)
    disk.#server.listen(path)
    await once(disk.#server, 'listening')
    return disk
  }

  read(offset: number, length: number): Buffer {
    const data = Buffer.alloc(length)
    readSync(this.#file, data, 0, length, offset)
    return data
  }

  write(offset: number, data: Buffer): void {
    if (this.#cache === 'torn') this.#remember(offset, data)
    writeSync(this.#file, data, 0, data.length, offset)
  }

  flush(): void {
    this.#unflushed.clear()
  }

  /** The power is gone: nobody reads or writes any more, and of what was not flushed remains what chance leaves. */
  cut(random: () => number): DiskLoss {
    for (const socket of this.#sockets) socket.destroy()
    const unflushed = this.#unflushed.size
    const allLost = random() < ALL_LOST
    let lost = 0
    for (const [sector, versions] of this.#unflushed) {
      const chosen = allLost ? 0 : Math.floor(random() * versions.length)
      if (chosen === versions.length - 1) continue
      lost++
      writeSync(this.#file, versions[chosen]!, 0, SECTOR_BYTES, sector * SECTOR_BYTES)
    }
    this.#unflushed.clear()
    return { unflushed, lost }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
    closeSync(this.#file)
  }

  #remember(offset: number, data: Buffer): void {
    if (offset % SECTOR_BYTES !== 0 || data.length % SECTOR_BYTES !== 0)
      throw new Error(`a write of parts of sectors: ${data.length} bytes at ${offset}`)
    const before = this.read(offset, data.length)
    for (let at = 0; at < data.length; at += SECTOR_BYTES) {
      const sector = (offset + at) / SECTOR_BYTES
      const versions = this.#unflushed.get(sector) ?? [before.subarray(at, at + SECTOR_BYTES)]
      versions.push(data.subarray(at, at + SECTOR_BYTES))
      this.#unflushed.set(sector, versions)
    }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    void serveBlocks(socket, this)
  }
}
