/** What the further processes of `npm start` log: each into a file of its own in the data folder, over all its runs. */
import { closeSync, fstatSync, globSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

export class NodeLogs<Event> {
  readonly #pattern: string
  readonly #parse: (line: string) => Event[]
  /** By file: what was read of it, bytes, and the line that is not whole yet. */
  readonly #read = new Map<string, { bytes: number; rest: string }>()
  readonly #lines: string[] = []
  readonly #events: Event[] = []

  /** `parse`: the event of a line, or none. */
  constructor(dataDir: string, parse: (line: string) => Event[]) {
    this.#pattern = join(dataDir, 'nodes', '*.log')
    this.#parse = parse
  }

  /** All lines so far; those of one process in their order. */
  lines(): readonly string[] {
    this.#readOn()
    return this.#lines
  }

  /** Those of the lines. */
  events(): readonly Event[] {
    this.#readOn()
    return this.#events
  }

  #readOn(): void {
    for (const file of globSync(this.#pattern))
      for (const line of this.#newLines(file)) {
        this.#lines.push(line)
        this.#events.push(...this.#parse(line))
      }
  }

  #newLines(file: string): string[] {
    const { bytes, rest } = this.#read.get(file) ?? { bytes: 0, rest: '' }
    const added = readFrom(file, bytes)
    const lines = (rest + added.toString()).split('\n')
    this.#read.set(file, { bytes: bytes + added.length, rest: lines.pop() ?? '' })
    return lines
  }
}

function readFrom(file: string, from: number): Buffer {
  const open = openSync(file, 'r')
  try {
    const added = Buffer.alloc(Math.max(0, fstatSync(open).size - from))
    return added.subarray(0, readSync(open, added, 0, added.length, from))
  } finally {
    closeSync(open)
  }
}
