/** `.ci/run` with stand-ins for git and npm: its last line adds up what every part counted, and its exit code is true. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { tempFolder } from '../support/temp-folders.ts'

const CI = join(import.meta.dirname, '..', '..', '.ci')

/** What `npm <words>` prints and how it ends; all others print nothing and end well. */
type Parts = Readonly<Record<string, readonly [output: string, code: number]>>

const WELL: Parts = {
  'run --silent audit': ['1 passed, 0 failed, 0 skipped', 0],
  'run --silent pin-base -- --check': ['', 0],
  test: ['  ✔ a test\n3 passed, 0 failed, 0 skipped\n40 passed, 0 failed, 2 skipped', 0],
  'run --silent test:sim -- --fresh --minutes 4': ['seed 1\n9 passed, 0 failed, 0 skipped', 0],
  'run test:several': ['7 passed, 0 failed, 1 skipped', 0],
}

/** Exit code and last line. */
async function run(parts: Parts): Promise<{ code: number; last: string | undefined; output: string }> {
  const folder = tempFolder('ci')
  const bin = join(folder, 'bin')
  cpSync(CI, join(folder, '.ci'), { recursive: true })
  mkdirSync(bin)
  // Its clone has nothing but the scripts that are run in it.
  const scripts = [
    'test/kube/build.sh',
    'test/kube/build-tools.sh',
    'test/payments/stripe/stripe-mock.sh',
    'test/cluster/backup/nats-cli.sh',
    'test/clients/generators.sh',
    'test/packages/nodes.sh',
  ]
  const clone = scripts.map((path) => `mkdir -p "$4/$(dirname ${path})"; echo true > "$4/${path}"`)
  const cases = Object.entries(parts).map(([words, [output, code]]) => {
    writeFileSync(join(folder, encodeURIComponent(words)), output === '' ? '' : `${output}\n`)
    return `'${words}') cat '${folder}/${encodeURIComponent(words)}'; exit ${code};;`
  })
  const stubs = {
    git: clone.join('\n'),
    npm: `case "$*" in\n${cases.join('\n')}\nesac`,
    'apt-get': 'true',
  }
  for (const [name, text] of Object.entries(stubs)) {
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${text}\n`, { mode: 0o755 })
  }
  const env = { PATH: `${bin}:${process.env.PATH}` }
  return new Promise((resolve) => {
    execFile('bash', [join(folder, '.ci', 'run')], { env }, (error, stdout, stderr) => {
      const last = stdout.trimEnd().split('\n').at(-1)
      resolve({ code: Number(error?.code ?? 0), last, output: stdout + stderr })
    })
  })
}

describe('the run of CI', () => {
  it('ends with the sum of what its parts counted', async () => {
    const { code, last, output } = await run(WELL)
    expect({ code, last }, output).to.deep.equal({ code: 0, last: '58 passed, 0 failed, 3 skipped' })
  })

  it('counts as skipped, by name, a base that has no digest', async () => {
    const { code, last, output } = await run({
      ...WELL,
      'run --silent pin-base -- --check': ['no digest', 1],
    })
    expect({ code, last }).to.deep.equal({ code: 0, last: '57 passed, 0 failed, 4 skipped' })
    expect(output).to.match(/^SKIPPED: the base of the image has no digest/m)
  })

  it('fails with any part, and runs the others all the same', async () => {
    const failing: Parts = {
      test: ['39 passed, 1 failed, 2 skipped', 1],
      'run test:several': ['6 passed, 1 failed, 1 skipped', 1],
      'run --silent audit': ['0 passed, 1 failed, 0 skipped', 1],
    }
    const sums = [
      '57 passed, 1 failed, 3 skipped',
      '57 passed, 1 failed, 3 skipped',
      '57 passed, 1 failed, 3 skipped',
    ]
    for (const [index, [part, end]] of Object.entries(failing).entries()) {
      const { code, last } = await run({ ...WELL, [part]: end })
      expect({ code, last }, part).to.deep.equal({ code: 1, last: sums[index] })
    }
  })

  it('takes a part that does not count for a failure, however it ended', async () => {
    for (const code of [0, 137]) {
      const ended = await run({ ...WELL, 'run test:several': ['  ✔ a test', code] })
      expect(ended.code, `${code}`).to.equal(code || 1)
      expect(ended.last).to.equal('51 passed, 1 failed, 2 skipped')
    }
  })

  it('fails before any part when the checks do', async () => {
    const { code, last } = await run({ ...WELL, 'run check': ['a fault', 1] })
    expect({ code, last }).to.deep.equal({ code: 1, last: '0 passed, 0 failed, 0 skipped' })
  })
})
