/** What people see of Buffers with kubectl, and that the status is the operator's alone. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { RESUME_ANNOTATION } from '../../../operator/resource.ts'
import { eventually } from '../../support/eventually.ts'
import { fieldsOf, fullResource, fullStatus, type Json, resourceSchema } from './fields.ts'
import type { Site } from './site.ts'

const ready = { ...fullStatus(), bufferId: 'shown', enabled: true, host: 'receiver.example', deadLetters: 4 }

export function presentation(site: () => Site): void {
  describe('is explained', () => {
    const described = [{ path: [], schema: resourceSchema }, ...fieldsOf('spec'), ...fieldsOf('status')]
    for (const { path, schema } of described) {
      const members = schema.properties ?? schema.items?.properties
      // The entry of a list is explained under the name of the list.
      if (members === undefined || path.at(-1) === '[]') continue
      const name = ['buffers', ...path.filter((step) => step !== '[]')].join('.')
      it(`in words on every field of ${name}`, async () => {
        // The document follows a definition some time after it is served.
        const read = async () => {
          const text = squeezed(await site().kubectl(['explain', name]))
          expect(text).to.include(squeezed(schema.description))
          for (const [member, { description }] of Object.entries(members)) {
            expect(text).to.match(new RegExp(` ${member} <`))
            expect(text).to.include(squeezed(description))
          }
        }
        await eventually(read, { timeoutMs: 30_000, everyMs: 200 })
      })
    }
  })

  describe('is shown', () => {
    it('in columns', async () => {
      await put(site(), 'shown', ready)
      const brief = await columns(site(), ['get', 'buffers'])
      expect(brief[0]).to.deep.equal(['NAME', 'READY', 'REASON', 'ENABLED', 'HOST', 'AGE'])
      const wide = await columns(site(), ['get', 'buf', '--output', 'wide'])
      expect(wide[0]).to.deep.equal([...brief[0]!, 'PROJECT', 'BUFFER-ID', 'DEAD-LETTERS'])
      const row = wide.find(([name]) => name === 'shown')!
      const age = row.splice(5, 1)
      expect(age.join()).to.match(/^\d+[sm]/)
      const seen = ['shown', 'True', 'Synced', 'true', 'receiver.example', 'shop', 'shown', '4']
      expect(row).to.deep.equal(seen)
    })

    it('under its short name, its categories and by its project', async () => {
      await put(site(), 'shown', ready)
      for (const name of ['buf', 'webhooks', 'all', 'buffers.buffering.penstock.dev']) {
        expect(await site().kubectl(['get', name, '--output', 'name'])).to.include('/shown\n')
      }
      const of = (project: string) => [
        'get',
        'buf',
        '-o',
        'name',
        '--field-selector',
        `spec.projectId=${project}`,
      ]
      expect(await site().kubectl(of('shop'))).to.include('/shown\n')
      expect(await site().kubectl(of('another'))).to.equal('')
    })
  })

  describe('keeps the status apart', () => {
    it('from who creates and changes the resource', async () => {
      await site().remove('apart')
      const created = (await site().create({ ...fullResource('apart'), status: ready })).body
      expect(created).not.to.have.property('status')
      await site().replace({ ...created, status: ready }, {}, '/status')
      const stored = (await site().read('apart')).body
      const answer = await site().replace({ ...stored, status: { bufferId: 'forged' } })
      expect(answer.status).to.equal(200)
      expect(answer.body.status).to.deep.equal(ready)
    })

    it('and leaves the rest to others: no spec, label or generation changes with it', async () => {
      const before = await put(site(), 'apart', {})
      const metadata = { ...(before.metadata as Json), annotations: { [RESUME_ANNOTATION]: 'now' } }
      const spec = { ...(before.spec as Json), displayName: 'Forged' }
      const answer = await site().replace({ ...before, metadata, spec, status: ready }, {}, '/status')
      expect(answer.status).to.equal(200)
      expect(answer.body.status).to.deep.equal(ready)
      expect(answer.body.spec).to.deep.equal(before.spec)
      expect(answer.body.metadata).not.to.have.property('annotations')
      expect(generationOf(answer.body)).to.equal(generationOf(before))
      const edited = await site().replace({ ...answer.body, spec })
      expect(generationOf(edited.body)).to.equal(generationOf(before) + 1)
    })
  })
}

/** A new resource of that name with that status. */
async function put(site: Site, name: string, status: Json): Promise<Json> {
  await site.remove(name)
  const { body } = await site.create(fullResource(name))
  const answer = await site.replace({ ...body, status }, {}, '/status')
  expect(answer.status).to.equal(200)
  return answer.body
}

function generationOf({ metadata }: Json): number {
  return (metadata as Json).generation as number
}

/** The words of each line; columns have no blanks inside here. */
async function columns(site: Site, args: readonly string[]): Promise<string[][]> {
  const text = await site.kubectl(args)
  return text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
}

function squeezed(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}
