import { spawn } from 'node:child_process'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { run } from './kube.ts'

describe('a program that a test runs', () => {
  it('is heard to its end, also when it is found to be gone before its pipes are read', async () => {
    // The end of one child is when all of them are asked whether they are gone: here that of `first`, whose output
    // keeps this process busy until the other one has written and ended.
    const first = spawn('echo')
    first.stdout.once('data', () => block(600))
    const heard = run('bash', ['-c', 'sleep 0.4; echo all of it'])
    block(200)
    expect(await heard).to.deep.equal({ code: 0, stdout: 'all of it\n', stderr: '' })
  })

  it('is over although a server that it left behind holds its pipes', async () => {
    const { code, stdout } = await run('bash', ['-c', 'sleep 30 & echo $!; exit 3'])
    process.kill(Number(stdout), 'SIGKILL')
    expect(code).to.equal(3)
  })

  it('answers what went wrong when there is none', async () => {
    const { code, stderr } = await run('/nowhere/program', [])
    expect(code).to.equal(-1)
    expect(stderr).to.include('ENOENT')
  })
})

function block(ms: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
