/**
 * The source text of a number in a JSON text: `JSON.parse` turns 9007199254740993 and ...992 into one double,
 * and two customers into one group. Used only where the parsed value is a number.
 */
import { closes, opens, stringEnd } from './json.ts'

const COLON = 0x3a
const COMMA = 0x2c
const QUOTE = 0x22
const OPEN_BRACKET = 0x5b

/**
 * The text of the number that `segments` lead to in `bytes`, a valid JSON text, or null when another value or
 * none is there. As in `JSON.parse`, the last of duplicate keys wins, and escaped names count decoded.
 * One pass, no recursion, whatever the depth.
 */
export function numberText(bytes: Uint8Array, segments: readonly string[]): string | null {
  const scan = new PathScan(bytes, segments)
  scan.run()
  return scan.found
}

/**
 * One pass over the tokens. `#onPath` counts the open containers that lie on the path; only when the innermost
 * open container is the last of them do its members matter.
 */
class PathScan {
  found: string | null = null
  readonly #bytes: Uint8Array
  readonly #segments: readonly string[]
  readonly #names: Buffer[]
  /** Of each open container on the path: the next element's index, or -1 in an object. */
  readonly #indexes: number[] = []
  #depth = 0
  /** Whether the next value is on the path; the root is. */
  #matches = true

  constructor(bytes: Uint8Array, segments: readonly string[]) {
    this.#bytes = bytes
    this.#segments = segments
    this.#names = segments.map((segment) => Buffer.from(segment))
  }

  run(): void {
    let at = 0
    while (at < this.#bytes.length) at = this.#token(at)
  }

  /** Reads the token at `at`; returns where the next may start. */
  #token(at: number): number {
    const byte = this.#bytes[at] as number
    if (opens(byte)) return this.#open(byte, at)
    if (closes(byte)) return this.#close(at)
    if (byte === COMMA) return this.#next(at)
    if (byte === QUOTE) return this.#string(at)
    if (byte <= 0x20 || byte === COLON) return at + 1
    return this.#scalar(at)
  }

  #open(byte: number, at: number): number {
    this.#depth++
    if (this.#matches && this.#onPath < this.#segments.length) {
      this.#indexes.push(byte === OPEN_BRACKET ? 0 : -1)
      this.#matches = byte === OPEN_BRACKET && this.#isElement(0)
    } else this.#matches = false
    return at + 1
  }

  #close(at: number): number {
    if (this.#isInnermost) this.#indexes.pop()
    this.#depth--
    this.#matches = false
    return at + 1
  }

  /** Behind a comma the next element of an array may be on the path; in an object its name decides. */
  #next(at: number): number {
    this.#matches = false
    const index = this.#indexes.at(-1)
    if (this.#isInnermost && index !== undefined && index >= 0) {
      this.#indexes[this.#indexes.length - 1] = index + 1
      this.#matches = this.#isElement(index + 1)
    }
    return at + 1
  }

  #string(at: number): number {
    const end = stringEnd(this.#bytes, at)
    if (!this.#isInnermost || this.#indexes.at(-1) !== -1) return end
    const behind = this.#skipBlanks(end)
    if (this.#bytes[behind] !== COLON) return end
    this.#matches = this.#isName(at, end)
    // A later duplicate replaces whatever an earlier one held, also when it is no number.
    if (this.#matches) this.found = null
    return behind + 1
  }

  #scalar(at: number): number {
    let end = at
    while (end < this.#bytes.length && !this.#endsScalar(end)) end++
    if (this.#matches && this.#onPath === this.#segments.length) {
      const text = Buffer.from(this.#bytes.subarray(at, end)).toString('latin1')
      this.found = /^[-0-9]/.test(text) ? text : null
    }
    return end
  }

  get #onPath(): number {
    return this.#indexes.length
  }

  get #isInnermost(): boolean {
    return this.#depth > 0 && this.#depth === this.#onPath
  }

  #isElement(index: number): boolean {
    return this.#segments[this.#onPath - 1] === String(index)
  }

  #isName(start: number, end: number): boolean {
    const raw = this.#bytes.subarray(start + 1, end - 1)
    if (!raw.includes(0x5c)) return this.#names[this.#onPath - 1]?.equals(raw) ?? false
    const text = Buffer.from(this.#bytes.subarray(start, end)).toString('utf8')
    return JSON.parse(text) === this.#segments[this.#onPath - 1]
  }

  #skipBlanks(at: number): number {
    let next = at
    while ((this.#bytes[next] as number) <= 0x20) next++
    return next
  }

  #endsScalar(at: number): boolean {
    const byte = this.#bytes[at] as number
    return byte <= 0x20 || byte === COMMA || closes(byte)
  }
}
