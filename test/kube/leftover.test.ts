import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { kubeOrSkip, run } from './kube.ts'

/** Starts a cluster, leaves it running, and ends as a run does; prints the pids of the cluster's servers. */
const PROGRAM = `
  import { readFileSync } from 'node:fs'
  const { start } = await import(${JSON.stringify(new URL('kube.ts', import.meta.url).href)})
  const { stopServers } = await import(${JSON.stringify(new URL('../support/servers.ts', import.meta.url).href)})
  const { dir } = await start({ parts: '' })
  const pidOf = (name) => Number(readFileSync(dir + '/run/' + name + '.pid', 'utf8'))
  console.log(JSON.stringify(['etcd', 'kube-apiserver'].map(pidOf)))
  await stopServers()
  process.exit()
`

describe('a cluster that nobody stopped', function () {
  this.timeout(120_000)

  before(async function () {
    await kubeOrSkip(this)
  })

  it('ends with the run', async () => {
    const { code, stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', PROGRAM])
    expect(code, stderr).to.equal(0)
    const pids = JSON.parse(stdout) as number[]
    expect(await Promise.all(pids.map(stateOf))).to.deep.equal(['', ''])
  })
})

/** Of `ps`; '' for one that has ended, collected or not. */
async function stateOf(pid: number): Promise<string> {
  const { stdout } = await run('ps', ['-o', 'stat=', '-p', String(pid)])
  return stdout.trim().replace(/^Z.*/, '')
}
