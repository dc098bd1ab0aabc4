import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { freePort, keptPort } from '../../internal/embedded/port.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('a free port', () => {
  it('is below those of outgoing connections, and can be listened on', async () => {
    for (let round = 0; round < 20; round++) {
      const port = await freePort()
      expect(port).to.be.within(15_000, 32_767)
      const server = createServer()
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(port, '127.0.0.1', resolve)
      })
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it('is not given twice, also to those who ask at once and listen later', async () => {
    const ports = await Promise.all(Array.from({ length: 500 }, () => freePort()))
    expect(new Set(ports).size).to.equal(500)
  })
})

describe('a port that is kept', () => {
  it('is another one when somebody took it meanwhile, and that is told', async () => {
    const file = join(tempFolder('port'), 'port')
    const told: unknown[] = []
    const log = { warn: (fields: unknown) => void told.push(fields) }
    const first = await keptPort(file, log)
    expect(await keptPort(file, log)).to.equal(first)
    expect(told).to.deep.equal([])
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(first, '127.0.0.1', resolve))
    const second = await keptPort(file, log)
    await new Promise((resolve) => server.close(resolve))
    expect(told).to.deep.equal([{ taken: first, port: second }])
    expect(await keptPort(file, log)).to.equal(second)
  })
})
