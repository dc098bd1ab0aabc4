import { Writable } from 'node:stream'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createLogger, readable } from '../../internal/telemetry/logger.ts'
import { terminalLine } from '../../internal/telemetry/terminal-line.ts'

const delivery = {
  msg: 'delivery',
  bufferId: 'orders',
  groupId: 'g',
  items: 3,
  statusCode: 200,
  durationMs: 12,
}

describe('an event on a terminal', () => {
  it('is a sentence for a delivery, and for a dead letter', () => {
    expect(terminalLine({ ...delivery, outcome: 'delivered' })).to.equal(
      'delivered 3 items of orders (group g): status 200, 12 ms',
    )
    const failed = { ...delivery, items: 1, attempt: 2, statusCode: 0, error: 'no answer', outcome: 'retry' }
    expect(terminalLine(failed)).to.equal(
      'attempt 2 of 1 item of orders (group g) failed: no answer, status 0, 12 ms; it is tried again',
    )
    expect(terminalLine({ ...failed, outcome: 'exhausted' })).to.match(/; it is not tried again$/)
    const retry = { msg: 'retry', dlqId: 'dlq_1', items: 2, bufferId: 'orders', durationMs: 3 }
    expect(terminalLine({ ...retry, delivered: true, statusCode: 200, error: null })).to.equal(
      'retried dead letter dlq_1: 2 items of orders: status 200, 3 ms',
    )
    expect(terminalLine({ ...retry, delivered: false, statusCode: 500, error: 'no' })).to.equal(
      'retry of dead letter dlq_1: 2 items of orders failed: no, status 500, 3 ms',
    )
    const dead = { msg: 'dead', dlqId: 'dlq_1', items: 1, bufferId: 'orders', groupId: 'g', reason: 'max' }
    expect(terminalLine(dead)).to.equal('dead letter dlq_1: 1 item of orders (group g), max')
  })

  it('is its name and its members otherwise', () => {
    const event = { level: 'info', role: 'penstock', time: 't', msg: 'ready', url: 'http://x', shards: 4 }
    expect(terminalLine({ ...event, none: undefined, of: { a: 1 } })).to.equal(
      'ready url=http://x shards=4 of={"a":1}',
    )
  })

  it('is one line, whatever stands in it, and does not steer the terminal', () => {
    for (const evil of ['a\nFATAL: b', 'a\r\u001b[2J', 'a\u2028b', 'a\u009bb', 'a\u0085b']) {
      for (const event of [
        { msg: 'x', evil },
        { ...delivery, outcome: 'retry', error: evil },
      ]) {
        expect(terminalLine(event)).not.to.match(/[\p{Cc}\p{Zl}\p{Zp}]/u)
      }
    }
  })

  it('is one line for an error, too', () => {
    let text = ''
    const sink = new Writable({
      write(chunk, _encoding, done) {
        text += String(chunk)
        done()
      },
    })
    const log = createLogger({ level: 'info', role: 'test', destination: readable(sink) })
    log.error({ err: new Error('the disk\nis full', { cause: new Error('ENOSPC') }) }, 'request failed')
    expect(text.trimEnd().split('\n')).to.have.length(1)
    expect(text).to.include('request failed').and.include('ENOSPC')
  })
})
