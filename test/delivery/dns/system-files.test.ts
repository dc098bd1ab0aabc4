import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { tempFolder } from '../../support/temp-folders.ts'

const PROGRAM = fileURLToPath(new URL('few-files-main.ts', import.meta.url))

describe('the files of the machine', function () {
  this.timeout(60_000)

  it('count as unread, not as empty, while the process has no file descriptor to read them', async () => {
    const folder = tempFolder('files')
    const [hosts, resolvConf] = [join(folder, 'hosts'), join(folder, 'resolv.conf')]
    await writeFile(hosts, '10.0.0.7 shop.test\n')
    await writeFile(resolvConf, 'nameserver 10.0.0.9\n')
    const script = 'ulimit -n 48 && exec "$@"'
    const command = [process.execPath, PROGRAM, hosts, resolvConf, 'shop.test']
    const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', ...command])
    const [without, afterwards] = JSON.parse(stdout)
    expect(without, 'nothing could be read').to.deep.equal([[], ['127.0.0.1']])
    expect(afterwards).to.deep.equal([['10.0.0.7'], ['10.0.0.9']])
  })
})
