import { expect } from 'chai'
import { describe, it } from 'mocha'

import { createLogger } from '../../internal/telemetry/logger.ts'
import { recorder } from './recorder.ts'

describe('the log', () => {
  it('writes a line an event, with level, time and role', () => {
    const { log, lines } = recorder()
    log.info({ items: 3 }, 'flush')
    expect(lines[0]).to.include({ level: 'info', role: 'test', msg: 'flush', items: 3 })
    expect(lines[0]?.time).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  })

  it('keeps quiet below its level', () => {
    const { log, lines } = recorder('warn')
    log.info('no')
    log.warn('yes')
    expect(lines.map(({ msg }) => msg)).to.deep.equal(['yes'])
  })

  it('never writes a secret, on the first two levels of an event', () => {
    let text = ''
    const log = createLogger({
      level: 'info',
      role: 'test',
      destination: { write: (line) => (text += line) },
    })
    const secrets = {
      secret: 'hunter2',
      signingSecret: 'hunter2',
      previousSecret: 'hunter2',
      password: 'hunter2',
      authorization: 'hunter2',
    }
    log.info({ ...secrets, natsUrl: 'hunter2', databaseUrl: 'hunter2', delivery: secrets }, 'configured')
    expect(text).to.include('configured').and.not.include('hunter2')
  })
})
