import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { checkAnswer, type SeenAnswer, UndocumentedAnswerError, undocumented } from './answers.ts'

const project = {
  projectId: 'shop',
  customerId: 'acme',
  name: 'Shop',
  enabled: true,
  createdAt: 1,
  updatedAt: 1,
}

function seen(change: Partial<SeenAnswer> & { body?: unknown } = {}): SeenAnswer {
  const { body = project, ...rest } = change
  return {
    method: 'GET',
    url: '/v1/admin/projects/shop',
    status: 200,
    contentType: 'application/json; charset=utf-8',
    text: JSON.stringify(body),
    ...rest,
  }
}

describe('the check of answers', () => {
  const good: [string, SeenAnswer][] = [
    ['a body of its schema', seen()],
    ['a list', seen({ url: '/v1/admin/projects?customerId=acme', body: [project, project] })],
    ['no body', seen({ method: 'DELETE', status: 204, contentType: null, text: '' })],
    ['a refusal', seen({ status: 404, body: { error: 'Project not found' } })],
    ['an unknown path', seen({ url: '/v1/none', status: 404, body: { error: 'Not found' } })],
    [
      'a method that the path lacks',
      seen({ method: 'PUT', status: 405, body: { error: 'Method not allowed' } }),
    ],
    ['a page', seen({ method: 'POST', url: '/v1/ingest/p/b', status: 400, contentType: 'text/html' })],
    ['HEAD', seen({ method: 'HEAD', text: '' })],
  ]
  for (const [what, answer] of good) it(`lets ${what} pass`, () => checkAnswer(answer))

  const bad: [string, SeenAnswer, RegExp][] = [
    ['a member too many', seen({ body: { ...project, secret: 'x' } }), /body .*additional.* secret/],
    ['a member too few', seen({ body: { ...project, name: undefined } }), /required property 'name'/],
    ['a wrong type', seen({ body: { ...project, createdAt: '1' } }), /createdAt must be integer/],
    ['null where it cannot be', seen({ body: { ...project, name: null } }), /name must be string/],
    [
      'a fault in a list',
      seen({ url: '/v1/admin/projects', body: [project, { ...project, enabled: 1 }] }),
      /1\.enabled must be boolean/,
    ],
    ['a status that is not documented', seen({ status: 202 }), /does not document this status/],
    ['a refusal with more', seen({ status: 404, body: { error: 'x', stack: 'y' } }), /stack/],
    ['a refusal without a text', seen({ status: 404, body: {} }), /required property 'error'/],
    [
      'a code of another endpoint',
      seen({ status: 403, body: { error: 'x', code: 'subscription_required' } }),
      /does not list the code subscription_required/,
    ],
    [
      'a code that is none',
      seen({ status: 404, body: { error: 'x', code: 'gone' } }),
      /code must be equal to one of/,
    ],
    ['another content type', seen({ contentType: 'text/plain' }), /content type text\/plain/],
    ['a page where none is documented', seen({ status: 404, contentType: 'text/html' }), /content type/],
    ['text that is no JSON', seen({ text: '{' }), /no JSON/],
    ['a body under 204', seen({ method: 'DELETE', status: 204 }), /no body/],
    ['an answer from nowhere', seen({ url: '/v1/none' }), /no endpoint/],
    ['HEAD with a body', seen({ method: 'HEAD' }), /HEAD/],
  ]
  for (const [what, answer, problem] of bad) {
    it(`refuses ${what}`, () => expect(() => checkAnswer(answer)).to.throw(UndocumentedAnswerError, problem))
  }

  describe('over fetch', () => {
    let server: Server
    let url: string

    before(async () => {
      server = createServer((req, res) => {
        const body = req.url?.endsWith('bad') ? { ...project, leak: 1 } : project
        res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    after(() => server.close())

    it('of any test rejects what is not as documented, and keeps it', async () => {
      const before = undocumented.length
      const error = await fetch(`${url}/v1/admin/projects/bad`).then(
        () => null,
        (reason: unknown) => reason,
      )
      expect(error).to.be.instanceOf(UndocumentedAnswerError)
      const [problem, ...others] = undocumented.splice(before)
      expect(problem).to.include('leak')
      expect(others).to.deep.equal([])
    })

    it('leaves other addresses alone', async () => {
      expect((await fetch(`${url}/elsewhere/bad`)).status).to.equal(200)
    })
  })
})
