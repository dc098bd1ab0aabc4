import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const PROGRAM = join(import.meta.dirname, 'service-program.ts')

describe('a service process', () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    it(`drains on ${signal} and exits with 0`, async () => {
      const { child, lines, ended } = run('good')
      await saw(lines, 'started')
      child.kill(signal)
      expect(await ended).to.deep.equal([0, null])
      expect(lines.seen).to.include('released')
    })
  }

  it('takes the same signal twice at once as one', async () => {
    const { child, lines, ended } = run('slow release')
    await saw(lines, 'started')
    child.kill('SIGINT')
    await saw(lines, 'releasing')
    child.kill('SIGINT')
    expect(await ended).to.deep.equal([0, null])
    expect(lines.seen).to.include('released')
  })

  it('ends at once on a later second signal', async () => {
    const { child, lines, ended } = run('stuck release')
    await saw(lines, 'started')
    child.kill('SIGTERM')
    await saw(lines, 'insisting is possible')
    child.kill('SIGTERM')
    expect(await ended).to.deep.equal([1, null])
  })

  it('reports a start that fails, releases what there is, and exits with 1', async () => {
    const { lines, ended } = run('bad start')
    expect(await ended).to.deep.equal([1, null])
    expect(lines.seen).to.include.members(['report: no port', 'released'])
  })

  it('exits with 1 when a release fails', async () => {
    const { child, lines, ended } = run('bad release')
    await saw(lines, 'started')
    child.kill('SIGTERM')
    expect(await ended).to.deep.equal([1, null])
    expect(lines.seen).to.include('error: resource was not released: Error: no')
  })

  it('releases and exits with 1 after an error that nobody caught', async () => {
    const { lines, ended } = run('uncaught')
    expect(await ended).to.deep.equal([1, null])
    expect(lines.seen).to.include.members(['fatal: out of the blue', 'released'])
  })
})

interface Lines {
  seen: string[]
  changed: () => void
}

function run(scenario: string): { child: ChildProcess; lines: Lines; ended: Promise<unknown[]> } {
  const child = spawn(process.execPath, [PROGRAM, scenario], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: Lines = { seen: [], changed: () => {} }
  createInterface({ input: child.stdout! }).on('line', (line) => {
    lines.seen.push(line)
    lines.changed()
  })
  return { child, lines, ended: once(child, 'close') }
}

function saw(lines: Lines, line: string): Promise<void> {
  return new Promise((resolve) => {
    lines.changed = () => lines.seen.includes(line) && resolve()
    lines.changed()
  })
}
