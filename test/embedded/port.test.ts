import { createServer } from 'node:net'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { freePort } from '../../internal/embedded/port.ts'

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
