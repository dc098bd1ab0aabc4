import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { openFileLimit } from '../../internal/runtime/open-files.ts'

describe('the limit of open files', () => {
  it('is what the process was started with', async () => {
    const source = fileURLToPath(new URL('../../internal/runtime/open-files.ts', import.meta.url))
    const program = `import(${JSON.stringify(source)}).then((it) => console.log(it.openFileLimit()))`
    const script = 'ulimit -n 321 && exec "$@"'
    const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', process.execPath, '-e', program])
    expect(stdout).to.equal('321\n')
  })

  it('is none where the system does not say', () => {
    expect(openFileLimit('/nowhere')).to.equal(Number.POSITIVE_INFINITY)
    expect(openFileLimit('/dev/null')).to.equal(Number.POSITIVE_INFINITY)
  })
})
