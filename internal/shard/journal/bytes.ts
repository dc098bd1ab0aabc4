/**
 * A growing byte buffer and a bounds-checked reader. Integers are LEB128 varints up to 2^53 - 1, computed
 * without bit operations above 2^31.
 */
import { readUuid, writeUuid } from '../../domain/uuid.ts'

export class ByteWriter {
  #buffer: Buffer
  #length = 0

  constructor(size = 512) {
    this.#buffer = Buffer.allocUnsafe(size)
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + size))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  integer(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new RangeError(`not a non-negative safe integer: ${value}`)
    this.#reserve(8)
    let rest = value
    while (rest >= 0x80) {
      const next = Math.floor(rest / 0x80)
      this.#buffer[this.#length++] = (rest - next * 0x80) | 0x80
      rest = next
    }
    this.#buffer[this.#length++] = rest
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#buffer.set(value, this.#length)
    this.#length += value.length
  }

  /** A safe integer of either sign, below 2^52 (zigzag). */
  difference(value: number): void {
    this.integer(value >= 0 ? value * 2 : -value * 2 - 1)
  }

  /** Length-prefixed bytes. */
  block(value: Uint8Array): void {
    this.integer(value.length)
    this.bytes(value)
  }

  text(value: string): void {
    this.block(Buffer.from(value))
  }

  /** 16 bytes written as 22 characters of base64url. */
  token(value: string): void {
    this.#reserve(16)
    const written = this.#buffer.write(value, this.#length, 16, 'base64url')
    if (written !== 16) throw new RangeError(`not 16 bytes of base64url: ${value}`)
    this.#length += 16
  }

  /** A UUID in its canonical form, as 16 bytes. */
  uuid(value: string): void {
    this.#reserve(16)
    writeUuid(this.#buffer, this.#length, value)
    this.#length += 16
  }

  /** The bytes written; a view that later writes may overwrite. */
  view(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}

export class CorruptBytesError extends Error {
  override readonly name = 'CorruptBytesError'
}

export class ByteReader {
  readonly #buffer: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get done(): boolean {
    return this.#at >= this.#buffer.length
  }

  byte(): number {
    const value = this.#buffer[this.#at]
    if (value === undefined) throw new CorruptBytesError(`ends at byte ${this.#at}`)
    this.#at++
    return value
  }

  integer(): number {
    let value = 0
    // Bit operations are faster, and exact below 2^31.
    for (let bits = 0; bits < 28; bits += 7) {
      const next = this.byte()
      value |= (next & 0x7f) << bits
      if (next < 0x80) return value
    }
    for (let scale = 2 ** 28; scale < 2 ** 56; scale *= 0x80) {
      const next = this.byte()
      value += (next & 0x7f) * scale
      if (next >= 0x80) continue
      if (Number.isSafeInteger(value)) return value
      break
    }
    throw new CorruptBytesError(`integer too long at byte ${this.#at}`)
  }

  difference(): number {
    const folded = this.integer()
    return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2
  }

  /** A view on the bytes, not a copy. */
  block(): Buffer {
    const size = this.integer()
    const begin = this.#pass(size)
    return this.#buffer.subarray(begin, begin + size)
  }

  text(): string {
    return this.block().toString()
  }

  token(): string {
    const begin = this.#pass(16)
    return this.#buffer.toString('base64url', begin, begin + 16)
  }

  uuid(): string {
    return readUuid(this.#buffer, this.#pass(16))
  }

  /** Answers where the bytes begin. */
  #pass(size: number): number {
    const begin = this.#at
    if (begin + size > this.#buffer.length) throw new CorruptBytesError(`wants ${size} bytes at ${begin}`)
    this.#at = begin + size
    return begin
  }
}
