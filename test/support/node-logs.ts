/** What the further processes of `npm start` log: each into a file of its own in the data folder, over all its runs. */
import { closeSync, fstatSync, globSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

export class NodeLogs {
  readonly #pattern: string
  /** By file: what was read of it, bytes, and the line that is not whole yet. */
  readonly #read = new Map<string, { bytes: number; rest: string }>()
  readonly #lines: string[] = []

  constructor(dataDir: string) {
    this.#pattern = join(dataDir, 'nodes', '*.log')
  }

  /** All lines so far; those of one process in their order. */
  lines(): readonly string[] {
    for (const file of globSync(this.#pattern)) this.#lines.push(...this.#newLines(file))
    return this.#lines
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
