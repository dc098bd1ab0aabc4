/** The types of `packages/client` are those of the API as it is. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { DOCUMENT, generatedTypes, headOf, TYPES } from '../../cmd/client-types/types.ts'
import { generatorOrSkip } from '../clients/generators.ts'

describe('the types of the client', function () {
  this.timeout(180_000)

  it('are made of api/openapi.json as it is: npm run packages:types', () => {
    const [head] = readFileSync(TYPES, 'utf8').split(/(?<=\n)/)
    expect(head).to.equal(headOf(readFileSync(DOCUMENT)))
  })

  it('are what the generator makes of it', async function () {
    const folder = await generatorOrSkip(this, 'typescript')
    expect(readFileSync(TYPES, 'utf8') === generatedTypes(folder), 'npm run packages:types').to.equal(true)
  })
})
