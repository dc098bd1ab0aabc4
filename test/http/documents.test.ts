import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { openApiDocument } from '../../internal/http/openapi/document.ts'
import { adminHarnessOfSuite, refuses } from './admin-harness.ts'
import { call } from './caller.ts'
import { RawClient } from './raw-client.ts'

const dist = join(import.meta.dirname, '..', '..', 'node_modules', 'swagger-ui-dist')

describe('the documents', () => {
  const harness = adminHarnessOfSuite()
  const get = (path: string, init?: RequestInit) => call(harness.service.url + path, init)

  it('answers the OpenAPI document to anybody', async () => {
    const { status, headers, json } = await get('/openapi.json')
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8')
    expect(json).to.deep.equal(JSON.parse(JSON.stringify(openApiDocument())))
  })

  it('answers a page that shows it, with everything that the page loads', async () => {
    const page = await get('/docs')
    expect(page.status).to.equal(200)
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8')
    const loaded = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
    expect(loaded).to.have.length(4)
    const types: Record<string, string> = { js: 'text/javascript', css: 'text/css', png: 'image/png' }
    for (const path of loaded) {
      // Relative to the page, which may stand behind a prefix.
      expect(path).to.match(/^docs\/[a-z0-9.-]+$/)
      const asset = await get(`/${path}`)
      expect(asset.status, path).to.equal(200)
      expect(asset.headers.get('content-type'), path).to.include(types[path.split('.').at(-1) ?? ''])
    }
  })

  it('serves the files of swagger-ui byte for byte', async () => {
    for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
      expect((await get(`/docs/${name}`)).text === readFileSync(join(dist, name), 'utf8'), name).to.equal(
        true,
      )
    }
  })

  it('lets the browser load and run nothing of another host, nor anything inline', async () => {
    const { headers, text } = await get('/docs')
    const policy = new Map(
      (headers.get('content-security-policy') ?? '').split('; ').map((part) => {
        const [name = '', ...sources] = part.split(' ')
        return [name, sources.join(' ')]
      }),
    )
    expect(Object.fromEntries(policy)).to.deep.equal({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    })
    expect(headers.get('x-content-type-options')).to.equal('nosniff')
    expect(text).not.to.match(/https?:\/\/|<style|style=|<script>|\son[a-z]+=/)
    expect((await get('/docs/start.js')).text).to.include('validatorUrl: null')
  })

  it('answers HEAD without a body, and no other method', async () => {
    for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui.css']) {
      const head = await get(path, { method: 'HEAD' })
      expect([head.status, head.text], path).to.deep.equal([200, ''])
      expect(Number(head.headers.get('content-length')), path).to.be.above(0)
      await refuses(get(path, { method: 'POST' }), 405)
      expect((await get(path, { method: 'OPTIONS' })).status, path).to.equal(204)
    }
  })

  it('serves nothing else of the folder, nor from outside it', async () => {
    for (const path of [
      ...['/docs/', '/docs/package.json', '/docs/index.html', '/docs/swagger-ui.js.map', '/docs/start.js/'],
      ...['/docs/%2e%2e/package.json', '/docs/..%2fpackage.json', '/docs/%00', '/docs//etc/passwd'],
      ...['/openapi.json/', '/docs/swagger-ui.css%00.js', '/DOCS'],
    ]) {
      await refuses(get(path), 404)
    }
    const raw = await RawClient.open(harness.service.port)
    for (const path of ['/docs/../package.json', '/docs/../../../../etc/passwd', '/docs/..\\package.json']) {
      raw.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      expect((await raw.answer()).status, path).to.equal(404)
    }
    raw.close()
  })
})
