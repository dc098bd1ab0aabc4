/**
 * Ids of packs (docs/architecture/protocol.md, "Packs"): 12 bytes, of which 9 name a *writer* and 3 number its packs.
 * A writer has one pack at a time under way for a shard, so its packs first stand there in the order of their numbers.
 * A pack with a number that is not above the last one was sent before, however long ago.
 */

export const PACK_ID_BYTES = 12
const WRITER_BYTES = 9
/** A writer numbers so many packs at most; then another one begins. */
const MOST_NUMBERS = 2 ** 24
/** Of an id as base64url text: 9 bytes are exactly 12 characters, so no character belongs to both parts. */
const WRITER_CHARACTERS = 12

/** Makes the ids of one process. */
export class PackIds {
  readonly #bytes: (size: number) => Uint8Array
  #writer: Uint8Array = new Uint8Array(WRITER_BYTES)
  #next = MOST_NUMBERS

  /** @param bytes random bytes: two writers must not have one name. */
  constructor(bytes: (size: number) => Uint8Array) {
    this.#bytes = bytes
  }

  /** To be called when the pack is sent, in the order of sending. */
  next(): Buffer {
    if (this.#next === MOST_NUMBERS) {
      this.#writer = this.#bytes(WRITER_BYTES)
      this.#next = 0
    }
    const id = Buffer.alloc(PACK_ID_BYTES)
    id.set(this.#writer)
    id.writeUIntBE(this.#next++, WRITER_BYTES, PACK_ID_BYTES - WRITER_BYTES)
    return id
  }
}

export interface PackName {
  /** 12 characters of base64url. */
  readonly writer: string
  /** 0 to 2^24 - 1. */
  readonly number: number
}

/** @param packId 16 characters of base64url. */
export function packNameOf(packId: string): PackName {
  return {
    writer: packId.slice(0, WRITER_CHARACTERS),
    number: Buffer.from(packId.slice(WRITER_CHARACTERS), 'base64url').readUIntBE(0, 3),
  }
}
