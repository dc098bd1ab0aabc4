/** A change of a buffer is judged as its creation is (api/vectors/buffers.json), but for what a merge patch means. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { applyBufferPatch, type NewBuffer, parseBufferCreate } from '../../internal/domain/buffer.ts'
import type { Buffer } from '../../internal/domain/model.ts'
import { type BufferVector, bodyOf, bufferVectors } from '../support/buffer-vectors.ts'

const OF_THE_CREATION = ['bufferId', 'projectId', 'customerId']

/** The stored buffer has what the patch leaves out, or has what it cannot change. */
const MERGED = [
  'groupKey: empty',
  'groupKey: mode jsonpath without a place',
  'no groupKey.mode',
  'delivery: empty',
  'consecutiveDlqCount, which the service sets',
]

describe('a change of a buffer', () => {
  const stored = storedBase()

  it('is judged as a creation is', () => {
    const asked = bufferVectors.documents.filter(isJudgedAlike)
    expect(asked).to.have.length.above(600)
    for (const vector of asked) {
      const { name, verdict, field } = vector
      const changed = applyBufferPatch(stored, patchOf(vector))
      expect(changed.ok ? 'taken' : 'refused', name).to.equal(verdict)
      if (!changed.ok) expect(changed.error.startsWith(field!), `${name}: ${changed.error}`).to.equal(true)
    }
  })

  it('keeps what it leaves out', () => {
    for (const name of MERGED) {
      const vector = bufferVectors.documents.find((each) => each.name === name)
      expect(applyBufferPatch(stored, patchOf(vector!)).ok, name).to.equal(true)
    }
  })
})

function storedBase(): Buffer {
  const parsed = parseBufferCreate(bufferVectors.base) as { value: NewBuffer }
  const { bufferId, projectId, config } = parsed.value
  const counted = { consecutiveDlqCount: 0, createdAt: 1, updatedAt: 1 }
  return { ...config, bufferId, projectId, customerId: 'acme', ...counted }
}

/** null removes a member, and where deliveries may go is not judged here. */
function isJudgedAlike({ name, set = {}, unset, because }: BufferVector): boolean {
  if (unset !== undefined || because === 'address' || MERGED.includes(name)) return false
  if (JSON.stringify(set).includes('null')) return false
  return Object.keys(set).every((path) => !OF_THE_CREATION.includes(path))
}

/** The whole members that the document sets. */
function patchOf(vector: BufferVector): Record<string, unknown> {
  const body = JSON.parse(JSON.stringify(bodyOf(vector, 'acme'))) as Record<string, unknown>
  const members = Object.keys(vector.set ?? {}).map((path) => path.split('.')[0]!)
  return Object.fromEntries(members.map((name) => [name, body[name]]))
}
