/** Leases while the broker, the network or a member itself fails. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join as pathOf } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import { eventually } from '../support/eventually.ts'
import { NatsProxy } from '../support/nats-proxy.ts'
import { natsAccount, ownNats } from '../support/servers.ts'
import { boots, type Member, members, TTL_MS } from './lease-members.ts'

/** Nobody is gone for so long after a watch began. */
const unsureMs = TTL_MS * 1.2

describe('leases under faults', function () {
  this.timeout(120_000)
  const { join, leave } = members()
  const ending: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    await leave()
    for (const end of ending.splice(0)) await end()
  })

  async function server(): Promise<NatsServer> {
    const started = await ownNats()
    ending.push(() => started.stop())
    return started
  }

  /** One member of each beside the other; the second one behind the proxy. */
  async function behindProxy(): Promise<{ one: Member; far: Member; proxy: NatsProxy }> {
    const { url, port } = await natsAccount()
    const proxy = await NatsProxy.to(port)
    ending.push(() => proxy.close())
    const one = await join(url)
    const far = await join(proxy.through(url))
    await certain(one, far)
    return { one, far, proxy }
  }

  /** All know all, and would know of anybody else that he is gone. */
  async function certain(...all: Member[]): Promise<void> {
    for (const member of all) {
      const nobody = randomUUID()
      await eventually(() => boots(member).length === all.length && member.leases.isGone(nobody))
    }
  }

  /** Who took whom for gone, and when, monotonic ms; looked for at each change and each few ms. */
  function watchful(all: Member[]): { by: Member; whom: Member; at: number }[] {
    const seen: { by: Member; whom: Member; at: number }[] = []
    const look = () => {
      for (const by of all)
        for (const whom of all)
          if (by.leases.isGone(whom.boot) && !seen.some((each) => each.by === by && each.whom === whom))
            seen.push({ by, whom, at: performance.now() })
    }
    const timer = setInterval(look, 3)
    for (const { leases } of all) leases.onChange(look)
    ending.push(async () => clearInterval(timer))
    return seen
  }

  /** How late a timer of this process was since then, at most, ms: nobody here can be more exact. */
  function lateness(): () => number {
    let [last, most] = [performance.now(), 0]
    const timer = setInterval(() => {
      most = Math.max(most, performance.now() - last)
      last = performance.now()
    }, 5)
    ending.push(async () => clearInterval(timer))
    return () => most
  }

  /** When the last value of `held` began, monotonic ms. */
  const turnedAt = ({ held }: Member) => held.at(-1)?.at ?? Number.NaN
  const timesHeld = ({ held }: Member) => held.map((each) => each.held)

  it('a broker that restarts loses them all: nobody counts as gone, all come back', async () => {
    const nats = await server()
    const all = [await join(nats.url), await join(nats.url), await join(nats.url)]
    all[0]?.leases.announce({ shards: [3] })
    await certain(...all)
    const gone = watchful(all)
    nats.kill('SIGKILL')
    await eventually(() => all.every(({ leases }) => !leases.held))
    const restarting = performance.now()
    await nats.restart()
    await eventually(() => all.every(({ leases }) => leases.held))
    const nobody = randomUUID()
    await eventually(() => all.every(({ leases }) => leases.isGone(nobody)))
    expect(performance.now() - restarting).to.be.above(unsureMs)
    expect(gone).to.deep.equal([])
    for (const member of all) {
      expect(boots(member)).to.deep.equal(all.map(({ boot }) => boot).sort())
      expect(timesHeld(member)).to.deep.equal([true, false, true])
      const shards = member.leases.leases().flatMap((lease) => lease.shards)
      expect(shards, 'what they said is said again').to.deep.equal([3])
      expect(member.fatal).to.deep.equal([])
    }
  })

  it('a broker that stands still: each gives up before the TTL by its own clock, and nobody is gone', async () => {
    const nats = await server()
    const all = [await join(nats.url), await join(nats.url)]
    await certain(...all)
    const gone = watchful(all)
    const lateMs = lateness()
    nats.kill('SIGSTOP')
    const stopped = performance.now()
    await eventually(() => all.every(({ leases }) => !leases.held))
    for (const member of all) expect(turnedAt(member) - stopped).to.be.below(TTL_MS + lateMs())
    // Longer than the patience of anybody who would trust silence.
    await eventually(() => performance.now() - stopped > 2 * TTL_MS)
    nats.kill('SIGCONT')
    await eventually(() => all.every(({ leases }) => leases.held))
    await certain(...all)
    expect(gone).to.deep.equal([])
    for (const member of all) {
      expect(timesHeld(member)).to.deep.equal([true, false, true])
      expect(member.fatal).to.deep.equal([])
      expect(member.problems.filter((text) => text.startsWith('the own lease is lost'))).to.have.length(1)
    }
  })

  it('a member that hears nothing gives up before anybody takes it for gone, and comes back', async () => {
    const { one, far, proxy } = await behindProxy()
    const gone = watchful([one, far])
    proxy.swallow(() => true)
    await eventually(() => gone.length === 1)
    expect(gone[0]).to.include({ by: one, whom: far })
    expect(timesHeld(far)).to.deep.equal([true, false])
    expect(turnedAt(far)).to.be.below(gone[0]?.at ?? 0)
    expect(boots(far), 'it knows nothing of others').to.have.length(1)
    proxy.disarm()
    await eventually(() => far.leases.held && boots(one).length === 2 && boots(far).length === 2)
    expect(one.leases.isGone(far.boot)).to.equal(false)
    await certain(one, far)
    expect(gone).to.have.length(1)
    expect([...far.fatal, ...one.fatal]).to.deep.equal([])
  })

  it('a member whose writes are not answered still knows that they were stored', async () => {
    const { one, far, proxy } = await behindProxy()
    proxy.swallow(({ reply }) => !reply.startsWith('$JS.ACK'))
    const from = proxy.swallowed
    far.leases.announce({ shards: [4] })
    await eventually(() => proxy.swallowed > from)
    const said = ({ leases }: Member) => leases.leases().find(({ boot }) => boot === far.boot)?.shards
    await eventually(() => expect(said(one)).to.deep.equal([4]))
    // By what the watch brought: no answer has reached it.
    await eventually(() => expect(said(far)).to.deep.equal([4]))
    const swallowed = proxy.swallowed
    await eventually(() => proxy.swallowed > swallowed + 10)
    expect(far.problems.some((text) => text.includes('the own lease could not be renewed: '))).to.equal(true)
    expect(timesHeld(far)).to.deep.equal([true])
    proxy.disarm()
    far.leases.announce({ shards: [5] })
    await eventually(() => expect(said(one)).to.deep.equal([5]))
    expect(far.fatal).to.deep.equal([])
    expect(timesHeld(one)).to.deep.equal([true])
  })

  it('a write that times out is followed by the next one, in time', async () => {
    const { one, far, proxy } = await behindProxy()
    let answers = 0
    proxy.swallow(({ reply }) => !reply.startsWith('$JS.ACK') && answers++ === 0)
    await eventually(() => far.problems.length > 0 && answers > 3)
    expect(timesHeld(far)).to.deep.equal([true])
    expect(boots(one)).to.have.length(2)
    expect(far.fatal).to.deep.equal([])
  })

  it('a watch that lost a message begins anew, and nobody is gone before its time', async () => {
    const { one, far, proxy } = await behindProxy()
    const gone = watchful([one, far])
    const losingFrom = performance.now()
    let losing = true
    proxy.swallow(({ reply }) => {
      const lose = losing && reply.startsWith('$JS.ACK')
      if (lose) losing = false
      return lose
    })
    const nobody = randomUUID()
    await eventually(() => far.problems.some((text) => text.includes('a gap after message')))
    expect(far.leases.isGone(nobody)).to.equal(false)
    await eventually(() => far.leases.isGone(nobody))
    expect(performance.now() - losingFrom).to.be.above(unsureMs)
    expect(gone).to.deep.equal([])
    expect(timesHeld(far)).to.deep.equal([true])
  })

  it('a watch that brings nothing proves nothing: it begins anew, and nobody is gone', async () => {
    const { one, far, proxy } = await behindProxy()
    const gone = watchful([one, far])
    const from = performance.now()
    proxy.swallow(({ reply }) => reply.startsWith('$JS.ACK'))
    await eventually(() => far.problems.some((text) => text.includes('what was stored did not come')))
    await eventually(() => performance.now() - from > 2 * TTL_MS)
    expect(gone).to.deep.equal([])
    expect(boots(far)).to.have.length(2)
    expect(timesHeld(far), 'its writes are answered').to.deep.equal([true])
    proxy.disarm()
    await certain(one, far)
    expect(gone).to.deep.equal([])
  })

  it('a connection that is cut comes back: nothing is lost, and everything starts anew', async () => {
    const { one, far, proxy } = await behindProxy()
    const gone = watchful([one, far])
    const nobody = randomUUID()
    await eventually(() => far.leases.isGone(nobody))
    const certainWhenCut: boolean[] = []
    far.connection.onDisconnect(() => certainWhenCut.push(far.leases.isGone(nobody)))
    proxy.reset()
    await eventually(() => certainWhenCut.length > 0)
    expect(certainWhenCut).to.deep.equal([false])
    await eventually(() => far.leases.isGone(nobody))
    expect(far.leases.held).to.equal(true)
    expect(gone).to.deep.equal([])
    far.leases.announce({ shards: [1] })
    await eventually(() => one.leases.leases().some(({ shards }) => shards.includes(1)))
  })

  it('a member without a broker is let go without its release, which expires', async () => {
    const { one, far, proxy } = await behindProxy()
    await proxy.close()
    await eventually(() => !far.connection.connected)
    await far.leases.close()
    expect(far.leases.held).to.equal(false)
    expect(far.problems).to.include(
      'the own lease was not released: it expires by itself: not connected to the broker',
    )
    await eventually(() => one.leases.isGone(far.boot))
  })

  it('a process that stood still finds its lease lost, gets it back, and takes nobody for gone', async () => {
    const { url } = await natsAccount()
    const one = await join(url)
    const boot = randomUUID()
    const { child, lines } = holder(url, boot, one.boot)
    ending.push(() => ended(child))
    await eventually(() => lines.length > 0 && boots(one).length === 2)
    const nobody = randomUUID()
    await eventually(() => one.leases.isGone(nobody))
    child.kill('SIGSTOP')
    await eventually(() => one.leases.isGone(boot))
    const stopped = performance.now()
    await eventually(() => performance.now() - stopped > 2 * TTL_MS)
    child.kill('SIGCONT')
    await eventually(() => !one.leases.isGone(boot) && boots(one).includes(boot))
    await eventually(() => expect(lines.at(-1)).to.equal('held true, other gone false'))
    const back = performance.now()
    await eventually(() => performance.now() - back > 2 * TTL_MS)
    expect(lines).to.deep.equal([
      'held true, other gone false',
      'held false, other gone false',
      'held true, other gone false',
    ])
    child.kill('SIGTERM')
    await eventually(() => one.leases.isGone(boot))
    expect(await ended(child)).to.equal(0)
  })
})

function holder(url: string, boot: string, other: string): { child: ChildProcess; lines: string[] } {
  const program = pathOf(import.meta.dirname, 'lease-holder.ts')
  const child = spawn(process.execPath, [program, boot, other], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, LEASE_BROKER: url },
  })
  const lines: string[] = []
  createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line))
  return { child, lines }
}

/** Its exit code; null when it had to be killed. */
async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, 'exit')
    const killing = setTimeout(() => child.kill('SIGKILL'), 5_000)
    await exit
    clearTimeout(killing)
  }
  return child.exitCode
}
