/** `penstock crd export`. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseAllDocuments } from 'yaml'
import { crdExport } from '../../support/crd-export.ts'
import { walk } from './walk.ts'

describe('penstock crd export', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker

  it('prints what npm run crd -- export prints, as YAML and as JSON', async () => {
    const projectId = await on.api.createProject()
    const delivery = {
      url: on.sink.url('/crd'),
      headers: { 'X-Team': 'hidden' },
      signing: { secret: 'hidden' },
    }
    for (const id of ['B_1', 'a']) await on.api.createBuffer(projectId, `${projectId}-${id}`, { delivery })
    const args = ['--project', projectId, '--namespace', 'shop', '--credentials-secret', 'key']
    const printed = await walker.withKey.run(['crd', 'export', ...args])
    const env = { PENSTOCK_URL: on.installation.service.url, PENSTOCK_API_KEY: on.api.key! }
    expect(printed).to.deep.equal(await crdExport(args, env))
    expect(printed.stderr).to.equal('2 Buffers\n')
    expect(printed.stdout).to.not.include('hidden')
    expect(await walker.withKey.json(['crd', 'export', ...args])).to.deep.equal({
      apiVersion: 'v1',
      kind: 'List',
      items: parseAllDocuments(printed.stdout).map((document) => document.toJS()),
    })
    const plain = await walker.withKey.run(['crd', 'export', ...args, '--plain-header', 'x-team'])
    expect(plain.stdout)
      .to.include('X-Team: hidden')
      .and.to.match(/signing-secret/)
  })

  it('refuses options that are none', async () => {
    for (const [option, value] of [
      ['--namespace', 'A'],
      ['--credentials-secret', '-'],
      ['--plain-header', 'Authorization'],
    ]) {
      const { code, stdout, stderr } = await walker.withKey.run(['crd', 'export', option!, value!])
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(new RegExp(`^penstock: ${option}`))
    }
  })
})
