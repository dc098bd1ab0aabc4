/** `penstock buffers`. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { walk } from './walk.ts'

describe('penstock buffers', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker

  it('make, list, show, change and remove a buffer, of a file with a byte order mark', async () => {
    const projectId = await on.api.createProject()
    const bufferId = `${projectId}-orders`
    const wanted = { bufferId, projectId, name: 'Orders', groupKey: { mode: 'jsonpath', path: '$.customer' } }
    const path = walker.file(
      'buffer.json',
      `\uFEFF${JSON.stringify({ ...wanted, delivery: { url: on.sink.url('/cli') } })}`,
    )
    expect(await walker.withKey.json(['buffers', 'create', path])).to.include({ bufferId, enabled: true })
    expect((await walker.withKey.run(['buffers', 'create', path])).code).to.equal(1)
    const listed = await walker.withKey.run(['buffers', 'ls', '--project', projectId])
    expect(listed.stdout).to.match(new RegExp(`^BUFFER .*\n${bufferId}  ${projectId}  enabled  http\\S+\n$`))
    const changed = await walker.withKey.json(['buffers', 'update', bufferId, '-'], '{"enabled":false}')
    expect(changed).to.include({ enabled: false })
    expect(JSON.parse((await walker.withKey.run(['buffers', 'get', bufferId])).stdout)).to.deep.equal(changed)
    expect(await walker.withKey.json(['buffers', 'rm', bufferId])).to.deep.equal({ bufferId, deleted: true })
    const gone = await walker.withKey.run(['buffers', 'get', bufferId])
    expect(gone).to.deep.equal({
      code: 4,
      stdout: '',
      stderr: `penstock: buffer ${bufferId}: 404 Buffer not found\n`,
    })
  })
})
