/** A process that may open few files: what it lacks itself is no failure of the destination. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AttemptResult } from '../../internal/delivery/attempt.ts'
import { type Sink, startSink } from '../support/sink.ts'

const PROGRAM = fileURLToPath(new URL('few-sockets-main.ts', import.meta.url))
const FILES = 48
const ATTEMPTS = 60

describe('a process without a file descriptor for another socket', function () {
  this.timeout(60_000)
  let sink: Sink

  beforeEach(async () => {
    sink = await startSink()
    sink.otherwise({ fault: 'hang' })
  })
  afterEach(() => sink.close())

  async function resultsOf(url: string): Promise<AttemptResult[]> {
    const script = 'ulimit -n "$1" && shift && exec "$@"'
    const command = [process.execPath, PROGRAM, url, String(ATTEMPTS)]
    const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', String(FILES), ...command])
    return JSON.parse(stdout)
  }

  const cases: [string, () => string, string][] = [
    ['an address', () => sink.url(), 'timeout'],
    ['a name with two addresses', () => sink.url('/', 'localhost'), 'timeout'],
    ['a destination with TLS', () => sink.url().replace('http:', 'https:'), 'tls'],
  ]
  for (const [what, urlOf, sentAs] of cases)
    it(`sends nothing, which is no attempt, to ${what}`, async () => {
      const results = await resultsOf(urlOf())
      const unsent = results.filter((result) => result.unsent)
      expect(unsent.length).to.be.within(1, ATTEMPTS - 1)
      const error = 'nothing was sent: this process has no file descriptor or memory for another connection'
      for (const result of unsent) expect(result).to.include({ error, retryable: true, statusCode: 0 })
      const sent = results.filter((result) => !result.unsent)
      expect(new Set(sent.map(({ errorClass }) => errorClass))).to.deep.equal(new Set([sentAs]))
    })
})
