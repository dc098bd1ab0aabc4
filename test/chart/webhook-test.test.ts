/** What `helm test` runs in a pod, here against a service without one. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Installation } from '../support/service.ts'
import { freshPayer, sharedInstallation } from '../support/shared-installation.ts'

const script = join(import.meta.dirname, '..', '..', 'charts', 'penstock', 'files', 'webhook-test.mjs')

describe('the program of helm test', function () {
  this.timeout(120_000)
  let installation: Installation
  before(async () => {
    installation = await sharedInstallation()
  })

  it('sends a webhook, reads its batch and leaves nothing behind', async () => {
    const { url } = installation.service
    const before = await leftovers()
    expect(await run({ INGRESS_URL: url, ADMIN_URL: url, OWNER_KEYS: ownerKeys() })).to.deep.equal({
      code: 0,
      stdout: 'A webhook went in, and its batch was read.\n',
      stderr: '',
    })
    expect(await leftovers()).to.deep.equal(before)
  })

  it('ends at once when its key is refused', async () => {
    const { url } = installation.service
    const wrong = `e2e=svk_${'0'.repeat(48)}`
    const { code, stderr } = await run({ INGRESS_URL: url, ADMIN_URL: url, OWNER_KEYS: wrong })
    expect(code).to.equal(1)
    expect(stderr).to.include('POST /v1/admin/projects: 401')
  })

  it('says when its customer has no credits', async () => {
    const { url } = installation.service
    const customerId = await freshPayer(0)
    const owner = `${customerId}=${installation.api(customerId).key}`
    const { code, stderr } = await run({ INGRESS_URL: url, ADMIN_URL: url, OWNER_KEYS: owner })
    expect(code).to.equal(1)
    expect(stderr).to.include(`customer ${customerId} has no credits: see config.initialCredits`)
  })

  it('fails when webhooks do not arrive, and leaves nothing behind', async () => {
    const { url } = installation.service
    const before = await leftovers()
    const unknownPath = `${url}/nowhere`
    const { code, stderr } = await run({ INGRESS_URL: unknownPath, ADMIN_URL: url, OWNER_KEYS: ownerKeys() })
    expect(code).to.equal(1)
    expect(stderr).to.include('the ingress').and.include('404')
    expect(await leftovers()).to.deep.equal(before)
  })

  const ownerKeys = () => `e2e=${installation.api().key}, other=svk_1`
  const leftovers = async () => {
    const { key } = installation.api()
    const read = async (path: string) => {
      const answer = await fetch(installation.service.url + path, { headers: { 'X-API-Key': key } })
      return JSON.stringify(await answer.json())
    }
    const found = [await read('/v1/admin/projects'), await read('/v1/dlq?customerId=e2e')].join()
    return found.match(/helm-test-[-0-9a-f]+/g)
  }
})

/** As the pod has it: the text of the program is an argument. */
function run(env: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }> {
  const args = ['--input-type=module', '--eval', readFileSync(script, 'utf8')]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    )
  })
}
