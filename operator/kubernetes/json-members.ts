/**
 * JSON without the members that nobody reads, let go as its bytes come: metadata that others write may be a hundred times what
 * is read of it, and parsed it takes five times as much again.
 */

/**
 * Whether the member `name` stays in an object that is the value of the member `parent`, or an element of it; '' at the top.
 */
export type Keeps = (parent: string, name: string) => boolean

/** `bytes`: JSON texts, one after another. Each one stays JSON; what it keeps, it keeps as it came. */
export async function* withMembers(
  bytes: AsyncIterable<Uint8Array>,
  keeps: Keeps,
): AsyncGenerator<Uint8Array> {
  const filter = new MemberFilter(keeps)
  for await (const chunk of bytes) yield filter.take(chunk)
}

const [QUOTE, BACKSLASH, COMMA] = [...Buffer.from('"\\,')] as [number, number, number]
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [...Buffer.from('{}[]')] as [
  number,
  number,
  number,
  number,
]

/** An object or a list that is open. */
interface Open {
  readonly isObject: boolean
  /** The member that it is the value of, or that the list is the value of which it is in. */
  readonly parent: string
  /** The last member that stays. */
  member: string
  /** The next string is the name of a member. */
  isNameNext: boolean
  hasMembers: boolean
}

class MemberFilter {
  readonly #keeps: Keeps
  readonly #open: Open[] = []
  #in: 'text' | 'string' | 'name' | 'dropped' | 'droppedString' = 'text'
  #isEscape = false
  /** Bytes of the name that has begun. */
  #name: number[] = []
  /** Objects and lists that are open in what is dropped. */
  #droppedDepth = 0
  #out: Uint8Array = new Uint8Array(0)
  #length = 0

  constructor(keeps: Keeps) {
    this.#keeps = keeps
  }

  /** What stays of the chunk, and of what was held back before it: the beginning of a name, and a comma. */
  take(chunk: Uint8Array): Uint8Array {
    this.#out = new Uint8Array(chunk.length + this.#name.length + 3)
    this.#length = 0
    for (let at = 0; at < chunk.length; at++) this.#byte(chunk[at]!)
    // A copy: a part would keep all of it.
    return this.#out.slice(0, this.#length)
  }

  #byte(byte: number): void {
    switch (this.#in) {
      case 'text':
        this.#text(byte)
        return
      case 'string':
        this.#put(byte)
        if (this.#endsString(byte)) this.#in = 'text'
        return
      case 'name':
        if (this.#endsString(byte)) this.#endName()
        else this.#name.push(byte)
        return
      case 'dropped':
        this.#drop(byte)
        return
      case 'droppedString':
        if (this.#endsString(byte)) this.#in = 'dropped'
    }
  }

  #text(byte: number): void {
    const open = this.#open.at(-1)
    if (byte === QUOTE) {
      this.#in = open?.isNameNext ? 'name' : 'string'
      if (this.#in === 'string') this.#put(byte)
      return
    }
    // That between members comes with the next one that stays.
    if (byte === COMMA && open?.isObject) {
      open.isNameNext = true
      return
    }
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#push(byte === OPEN_OBJECT, open)
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) this.#open.pop()
    this.#put(byte)
  }

  #push(isObject: boolean, within: Open | undefined): void {
    const parent = within?.isObject ? within.member : (within?.parent ?? '')
    this.#open.push({ isObject, parent, member: '', isNameNext: isObject, hasMembers: false })
  }

  #endName(): void {
    const open = this.#open.at(-1)!
    const name: string = JSON.parse(`"${Buffer.from(this.#name)}"`)
    open.isNameNext = false
    if (this.#keeps(open.parent, name)) {
      if (open.hasMembers) this.#put(COMMA)
      this.#put(QUOTE)
      for (const byte of this.#name) this.#put(byte)
      this.#put(QUOTE)
      open.member = name
      open.hasMembers = true
      this.#in = 'text'
    } else this.#in = 'dropped'
    this.#name = []
  }

  #drop(byte: number): void {
    if (byte === QUOTE) this.#in = 'droppedString'
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#droppedDepth++
    else if (this.#droppedDepth > 0) {
      if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) this.#droppedDepth--
    } else if (byte === COMMA || byte === CLOSE_OBJECT) {
      this.#in = 'text'
      this.#text(byte)
    }
  }

  /** Of a byte behind the quote that begins a string. */
  #endsString(byte: number): boolean {
    if (this.#isEscape) {
      this.#isEscape = false
      return false
    }
    this.#isEscape = byte === BACKSLASH
    return byte === QUOTE
  }

  #put(byte: number): void {
    this.#out[this.#length++] = byte
  }
}
