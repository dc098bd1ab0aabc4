/** What a command reads: JSON from a file or from stdin, and a key without an echo. */
import { createReadStream, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { withoutMark } from './byte-order-mark.ts'
import { EXIT } from './exit.ts'
import { Failure } from './failure.ts'
import type { Streams } from './session.ts'

const STDIN = '-'

/** The whole of it, without a byte order mark. `file`: `-` is stdin. Throws a Failure that names the file. */
export async function readText(file: string, { stdin }: Streams): Promise<string> {
  if (file === STDIN) return text(stdin)
  try {
    return withoutMark(readFileSync(file, 'utf8'))
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** The object in it. */
export async function readObject(file: string, streams: Streams): Promise<Record<string, unknown>> {
  const value = parsedJson(await readText(file, streams), nameOf(file))
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Failure(EXIT.usage, `${nameOf(file)}: is no JSON object`)
  return value as Record<string, unknown>
}

/** `name`: for the error. */
export function parsedJson(content: string, name: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new Failure(EXIT.usage, `${name}: is no JSON: ${(error as Error).message}`, { cause: error })
  }
}

/** Lines that are not blank, with their numbers from 1, without a byte order mark. */
export async function* readLines(
  file: string,
  { stdin }: Streams,
): AsyncGenerator<{ line: number; content: string }> {
  const input = file === STDIN ? stdin : createReadStream(file)
  let line = 0
  try {
    for await (const content of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      line++
      const written = line === 1 ? withoutMark(content) : content
      if (written.trim() !== '') yield { line, content: written }
    }
  } catch (error) {
    throw error instanceof Failure ? error : unreadable(file, error)
  }
}

/** One line: typed without an echo at a terminal, else the first of stdin. */
export async function readKey({ stdin, stderr }: Streams): Promise<string> {
  if (!stdin.isTTY) return (await text(stdin)).trim()
  stderr.write('API key: ')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const prompt = createInterface({ input: stdin, output: silent, terminal: true })
  try {
    return await new Promise<string>((resolve, reject) => {
      prompt.once('line', (line) => resolve(line.trim()))
      prompt.once('close', () => reject(new Failure(EXIT.usage, 'no key was typed')))
    })
  } finally {
    prompt.close()
    stderr.write('\n')
  }
}

function nameOf(file: string): string {
  return file === STDIN ? 'stdin' : file
}

function unreadable(file: string, error: unknown): Failure {
  const { code, message } = error as NodeJS.ErrnoException
  const why = code === 'ENOENT' ? 'there is no such file' : (code ?? message)
  return new Failure(EXIT.usage, `cannot read ${file}: ${why}`, { cause: error })
}
