/** What the management API says to each document of api/vectors/buffers.json. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Api } from '../support/api.ts'
import { type BufferVector, bodyOf, bufferVectors, vectorsByField } from '../support/buffer-vectors.ts'
import { sharedInstallation } from '../support/shared-installation.ts'

describe('what a buffer may be, by the management API', function () {
  this.timeout(120_000)
  let api: Api

  before(async () => {
    api = (await sharedInstallation()).api()
    await project(String(bufferVectors.base.projectId))
    const inUse = bufferVectors.documents.find(({ because }) => because === 'inUse')
    await thereIs('/v1/admin/buffers', bodyOf(inUse!, api.customerId))
  })

  for (const [field, vectors] of vectorsByField()) {
    it(`${field}: ${vectors.length} documents`, async () => {
      const wrong: string[] = []
      for (const vector of vectors) {
        const problem = await judge(vector)
        if (problem !== undefined) wrong.push(`${vector.name}: ${problem}`)
      }
      expect(wrong).to.deep.equal([])
    })
  }

  it('keeps nothing of what it refused', async () => {
    const { projectId, bufferId } = bufferVectors.base
    const query = `projectId=${projectId}&customerId=${api.customerId}`
    const left = await api.expect<{ bufferId: string }[]>(200, 'GET', `/v1/admin/buffers?${query}`)
    expect(left.map((each) => each.bufferId))
      .to.include('in-use')
      .and.not.include(bufferId)
  })

  /** What is wrong with the answer; undefined: nothing. */
  async function judge(vector: BufferVector): Promise<string | undefined> {
    const body = bodyOf(vector, api.customerId)
    if (vector.verdict === 'taken') await project(String(body.projectId))
    const { status, text } = await api.request('POST', '/v1/admin/buffers', body)
    if (status === 201) await api.expect(204, 'DELETE', `/v1/admin/buffers/${body.bufferId}`)
    return isSaid(vector, status, text) ? undefined : `${status} ${text.slice(0, 300)}`
  }

  function project(projectId: string): Promise<void> {
    return thereIs('/v1/admin/projects', { projectId, name: projectId })
  }

  /** Made here, or by the test of the operator before. */
  async function thereIs(path: string, body: object): Promise<void> {
    const { status, text } = await api.request('POST', path, body)
    expect(status, text).to.be.oneOf([201, 409])
  }
})

function isSaid({ verdict, field, says }: BufferVector, status: number, text: string): boolean {
  if (verdict === 'taken') return status === 201
  if (![400, 403, 409].includes(status)) return false
  const { error } = JSON.parse(text) as { error: string }
  if (says !== undefined) return error === says
  return error.startsWith(`${field} `) || (field === 'delivery.headers' && error.startsWith(`${field}.`))
}
