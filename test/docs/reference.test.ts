import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import openApi from '../../api/openapi.json' with { type: 'json' }
import { ConfigError, type ProcessRole, readConfig, requiredFor } from '../../cmd/config/config.ts'
import { SETTINGS } from '../../cmd/config/settings.ts'
import { roles as programs } from '../../cmd/docs/configuration.ts'
import { errorGroups } from '../../cmd/docs/errors.ts'
import { generated, pages, withParts } from '../../cmd/docs/generated.ts'
import { ATTEMPT_DEADLINE_MS, defaultLimits } from '../../internal/delivery/client.ts'
import { RESPONSE_KEPT_LIMIT, RESPONSE_READ_LIMIT } from '../../internal/delivery/exchange.ts'
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { errors } from '../../internal/domain/errors.ts'
import { MAX_GROUP_KEY_BYTES, MAX_MESSAGE_ID_BYTES } from '../../internal/domain/extract.ts'
import { MOST_SIGNATURES } from '../../internal/domain/signatures/presented.ts'
import { DEFAULT_TOLERANCE_SECONDS } from '../../internal/domain/signatures/schemes.ts'
import { responseSchemas } from '../../internal/http/schemas/registry.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { creation } from '../domain/sample-buffer.ts'
import { headings, pageText, rowsOf, section } from './pages.ts'

const ROOT = join(import.meta.dirname, '..', '..')

describe('the reference pages', () => {
  it('have every generated part as the code makes it now; else: npm run docs', async () => {
    for (const { path, content } of await generated())
      expect(readFileSync(path, 'utf8'), path).to.equal(content)
  })

  it('are all pages of the folder that have such parts', () => {
    const marked = globSync('docs/reference/*.md', { cwd: ROOT }).filter((path) =>
      readFileSync(join(ROOT, path), 'utf8').includes('<!-- generated: '),
    )
    expect(marked).to.have.members(Object.keys(pages).map((name) => join('docs', 'reference', name)))
  })

  it('have the headings that other pages and the code refer to', () => {
    expect(headings(pageText('api.md'), 2)).to.deep.equal([
      ...['Conventions', 'Ingest', 'Authentication', 'Roles', 'Customers', 'Projects', 'Buffers'],
      ...['Dead letters', 'Analytics', 'API keys', 'Audit', 'Credits', 'Credit packs', 'Plans'],
      ...['Subscriptions', 'Invoices', 'Notifications of the payment provider', 'Health', 'Limits'],
    ])
    expect(headings(pageText('buffers.md'), 2)).to.deep.equal([
      ...['Fields', 'Presets', 'Processing', 'Deliveries', 'Retries', 'Automatic pause'],
      ...['Deduplication', 'Group keys', 'Segments', 'Source verification', 'Required API keys'],
    ])
    expect(headings(pageText('errors.md'), 1)).to.deep.equal(['Errors'])
  })
})

describe('a page with generated parts', () => {
  const page = 'before\n<!-- generated: a -->\nold\n<!-- end: a -->\nafter\n'

  it('keeps what stands around them', async () => {
    const made = await withParts(page, { a: () => 'new' })
    expect(made).to.equal('before\n<!-- generated: a -->\n\nnew\n\n<!-- end: a -->\nafter\n')
    expect(await withParts(made, { a: () => 'new' })).to.equal(made)
  })

  it('takes a text that looks like a pattern of replacement as it is', async () => {
    expect(await withParts(page, { a: () => "$& $1 $'" })).to.include("\n$& $1 $'\n")
  })

  for (const [what, text, parts, problem] of [
    ['a part has no place', page, { a: () => '', b: () => '' }, 'the page has no place for b'],
    ['nobody makes a part', page, {}, 'nobody makes the part a of the page'],
    ['a part stands twice', page + page, { a: () => '' }, 'the page has a part twice'],
    [
      'a mark has no end',
      `${page}<!-- generated: b -->\n`,
      { a: () => '' },
      'a mark of the page has no other end',
    ],
    [
      'an end has no mark',
      `${page}<!-- end: b -->\n`,
      { a: () => '' },
      'a mark of the page has no other end',
    ],
  ] as const) {
    it(`is refused when ${what}`, async () => {
      const error = await withParts(text, parts).then(
        () => undefined,
        (thrown: Error) => thrown.message,
      )
      expect(error).to.equal(problem)
    })
  }
})

describe('the reference of the configuration', () => {
  /** Of callers of the API, one of which is the export of buffers. */
  const callers = ['PENSTOCK_URL', 'PENSTOCK_API_KEY']
  const page = pageText('configuration.md')
  const names = Object.values(SETTINGS).map(({ name }) => name)
  /** A value for whatever a program may require. */
  const LEAST: Record<string, string> = {
    PENSTOCK_NATS_URL: 'nats://nats:4222',
    PENSTOCK_DATABASE_URL: 'postgres://db/penstock',
    PENSTOCK_SECRET_KEY: Buffer.alloc(32).toString('base64'),
    PENSTOCK_ADMIN_URL: 'http://admin:8080',
  }

  it('has every variable that the code knows, in both tables, and no other', () => {
    const own = rowsOf(section(page, 'Variables'), 'variable', 'default', 'meaning').map(([name]) => name)
    expect(own).to.deep.equal([...names, 'OTEL_*', 'NODE_EXTRA_CA_CERTS', 'KUBECONFIG'])
    expect(readers().map(([name]) => name)).to.deep.equal(names)
  })

  it('has every variable that sources, chart and image name', () => {
    const files = [
      'Dockerfile',
      ...globSync(['{cmd,internal,operator}/**/*.ts', 'charts/**/*'], { cwd: ROOT }),
    ]
    const named = new Set<string>()
    for (const file of files.filter((path) => /\.\w+$|file$/.test(path))) {
      const text = readFileSync(join(ROOT, file), 'utf8')
      // Of "the other PENSTOCK_OIDC_ variables" the last letter is no part of a name.
      for (const [name] of text.matchAll(/\bPENSTOCK_[A-Z_]*[A-Z]\b/g)) named.add(name)
    }
    expect([...named].filter((name) => !names.includes(name))).to.have.members(callers)
    expect(names.filter((name) => !named.has(name) && name !== 'NATS_SERVER_BIN')).to.deep.equal([])
  })

  it('names as required what a program does not start without, and nothing else', () => {
    for (const [index, role] of programs.entries()) {
      const required = readers().flatMap(([name, ...cells]) => (cells[index] === 'required' ? [name!] : []))
      const enough = Object.fromEntries(required.map((name) => [name, LEAST[name]]))
      expect(() => readConfig(enough, role), role).not.to.throw()
      for (const name of required) {
        expect(() => readConfig({ ...enough, [name]: '' }, role)).to.throw(
          ConfigError,
          `${name}: is required for ${role}`,
        )
      }
    }
    expect(requiredFor('penstock', false).map((key) => SETTINGS[key].name)).to.deep.equal([
      'PENSTOCK_SECRET_KEY',
    ])
  })

  it('has the defaults that hold', () => {
    let compared = 0
    for (const [name = '', text = ''] of readers().map(([name]) => [name, defaultOf(name!)])) {
      for (const [value, role] of literalDefaults(text)) {
        const given = { ...leastOf(role), [name]: value }
        expect(readConfig(given, role), `${name} of ${role}`).to.deep.equal(readConfig(leastOf(role), role))
        compared++
      }
    }
    expect(compared).to.be.above(20)
  })

  function readers(): string[][] {
    const heads = ['`npm start`', '`npm run cluster`', 'ingress', 'admin', 'actor', 'operator', 'migrate']
    return rowsOf(page, 'variable', ...heads, 'commands')
  }

  function defaultOf(name: string): string {
    const row = section(page, 'Variables')
      .split('\n')
      .find((line) => line.startsWith(`| \`${name}\` |`))
    return row!.split(' | ')[1]!
  }

  /** Values that stand there as code, each with a program for which it is the default. */
  function literalDefaults(text: string): [string, ProcessRole][] {
    const [, all] = /^`([^`]+)`$/.exec(text) ?? []
    if (all !== undefined) return (['penstock', 'cluster', 'ingress'] as const).map((role) => [all, role])
    const [, start, cluster] = /^`([^`]+)`; `npm run cluster`: `([^`]+)`$/.exec(text) ?? []
    if (start !== undefined)
      return [
        [start, 'penstock'],
        [start, 'ingress'],
        [cluster!, 'cluster'],
      ]
    const [, local, other] =
      /^`([^`]+(?:`, `[^`]+)*)` (?:on the local instance|for `npm start` and .*), otherwise (.*)$/.exec(
        text,
      ) ?? []
    if (local === undefined) return []
    const here = local.replaceAll('`', '')
    const elsewhere =
      other === 'none' ? [] : [[other!.replaceAll('`', ''), 'ingress'] as [string, ProcessRole]]
    return [[here, 'penstock'], [here, 'cluster'], ...elsewhere]
  }

  function leastOf(role: ProcessRole): Record<string, string> {
    const needed = requiredFor(role, role === 'penstock' || role === 'cluster')
    return Object.fromEntries(needed.map((key) => [SETTINGS[key].name, LEAST[SETTINGS[key].name]!]))
  }
})

describe('the reference of buffers', () => {
  const page = pageText('buffers.md')

  /** Each breaks one rule. `refusals` says how its text stands in the page. */
  const breaches: readonly [change: Record<string, unknown>, refusal: string][] = [
    [{ groupKey: { mode: 'header' } }, 'groupKey.fallbackHeader is required in header mode'],
    [{ groupKey: { mode: 'jsonpath' } }, 'groupKey.path or groupKey.fallbackHeader is required'],
    [{ messageId: {} }, 'messageId.path or messageId.header is required'],
    [
      { groupKey: { mode: 'header', fallbackHeader: 'X-API-Key' } },
      '<header> must not name a header that carries credentials, or the signature',
    ],
    [{ delivery: { url: 'http://a b' } }, 'delivery.url must be an http or https URL'],
    [{ delivery: { url: 'http://u:p@h/' } }, 'delivery.url must not contain credentials'],
    [{ delivery: { url: 'http://blocked/' } }, 'delivery.url is not allowed: …'],
    [
      { throughput: { backoff: { initialMs: 2, maxMs: 1 } } },
      'throughput.backoff.initialMs must be <= throughput.backoff.maxMs',
    ],
    [
      { sourceVerification: { enabled: true } },
      'sourceVerification.signingSecret is required when sourceVerification.enabled is true',
    ],
    [
      { sourceVerification: { scheme: 'standard-webhooks', previousSecret: 'no base64' } },
      'sourceVerification.<secret> must be base64, with or without whsec_ in front, for the scheme standard-webhooks',
    ],
    [delivery({ idempotencyHeader: 'host' }), 'delivery.idempotencyHeader is a reserved header name'],
    [
      delivery({ signing: { secret: 's', header: 'host' } }),
      'delivery.signing.header is a reserved header name',
    ],
    [
      delivery({ idempotencyHeader: 'X-Svc-Signature' }),
      'delivery.idempotencyHeader must differ from the signature header',
    ],
    [delivery({ headers: { 'a b': '' } }), 'delivery.headers.<name> is not a valid header name'],
    [delivery({ headers: { host: '' } }), 'delivery.headers.<name> is a reserved header name'],
    [
      delivery({ headers: { 'x-idempotency-key': '' } }),
      'delivery.headers.<name> is set by the service itself',
    ],
    [delivery({ headers: { a: '', A: '' } }), 'delivery.headers.<name> is given twice'],
    [delivery({ headers: { a: '\u0100' } }), 'delivery.headers.<name> must be printable Latin-1 characters'],
    [
      delivery({
        headers: Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`h${n}`, 'x'.repeat(4_000)])),
      }),
      'delivery.headers must have at most 16384 characters',
    ],
    [{ groupKey: { mode: 'jsonpath', path: '$.\ud800' } }, '<field> has a character that is not text'],
    [delivery({ headers: { '\ud800': '' } }), '<field> has a name that is not text'],
    [delivery({ signing: { secret: '[redacted]' } }), '<field> is [redacted], but none is stored'],
  ]

  function delivery(fields: Record<string, unknown>): Record<string, unknown> {
    return { delivery: { url: 'http://h/', ...fields } }
  }

  it('has the rules that join several fields, as they are refused, and no other', () => {
    const told = breaches.map(([change, refusal]) => {
      const body = creation(change)
      const parsed = parseBufferCreate(body, (url) => (url === 'http://blocked/' ? 'it is blocked' : null))
      expect(parsed.ok, refusal).to.equal(false)
      const texts = parsed.ok ? [] : parsed.error.split('; ').map(general)
      expect(texts, refusal).to.include(refusal)
      return refusal
    })
    expect(rowsOf(page, 'refused with', 'rule').map(([refusal]) => refusal)).to.deep.equal(told)
  })

  /** The text of every row of the rules, which the breaches must all come to. */
  it('breaks every rule that the code has', () => {
    const source = readFileSync(join(ROOT, 'internal', 'domain', 'buffer-rules.ts'), 'utf8')
    const texts = [...source.matchAll(/'((?:[a-zA-Z.]+ )?(?:is|must|has) [^']+)'/g)].map(
      ([, text = '']) => text,
    )
    expect(texts).to.have.length.above(10)
    for (const text of texts)
      expect(
        breaches.some(([, refusal]) => refusal.endsWith(text)),
        text,
      ).to.equal(true)
  })

  function general(text: string): string {
    return text
      .replace(/^(delivery\.url is not allowed:) .*/, '$1 …')
      .replace(/^(groupKey\.fallbackHeader|messageId\.header) (?=must not name)/, '<header> ')
      .replace(/^delivery\.headers\.\S+( \S+)? (?=is|must)/, 'delivery.headers.<name> ')
      .replace(/^sourceVerification\.\S+ (?=must be base64)/, 'sourceVerification.<secret> ')
      .replace(/^\S+ (?=has a|is \[redacted\])/, '<field> ')
  }

  it('has the numbers of the code', () => {
    const seconds = ATTEMPT_DEADLINE_MS / 1000
    for (const text of [
      `within ${seconds} s from the`,
      `${RESPONSE_READ_LIMIT / 1024} KiB of a response body are read, and ${RESPONSE_KEPT_LIMIT / 1024} KiB are kept`,
      `at most ${defaultLimits.atOnce} connections to one origin`,
      `above ${MAX_MESSAGE_ID_BYTES} bytes of UTF-8`,
      `the first ${MOST_SIGNATURES} of the version`,
      `\`sourceVerification.toleranceSeconds\` (${DEFAULT_TOLERANCE_SECONDS} when absent)`,
      `above ${MAX_GROUP_KEY_BYTES.toLocaleString('en-US')} bytes of UTF-8`,
    ])
      expect(page.replaceAll('\n', ' ').replaceAll('  ', ' ')).to.include(text)
  })
})

describe('the reference of the API', () => {
  it('has every operation of the OpenAPI document, and no other', () => {
    const operations = Object.entries(openApi.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `\`${method.toUpperCase()} ${path}\``),
    )
    const shown = headings(pageText('api.md'), 3).filter((heading) => heading.startsWith('`'))
    expect(shown).to.have.members(operations)
  })

  it('has every body that an operation answers, there or on a page of its own', () => {
    const shown = [...headings(pageText('api.md'), 3), ...headings(pageText('errors.md'), 3)]
    const bodies = shown.filter((heading) => heading.startsWith('Body: '))
    const elsewhere = ['AnalyticsSummary', 'AnalyticsTimeseries', 'Buffer', 'DeliveryBatch']
    expect(bodies).to.have.members(
      Object.keys(responseSchemas).flatMap((name) => (elsewhere.includes(name) ? [] : [`Body: ${name}`])),
    )
  })
})

describe('the reference of errors', () => {
  it('has every refusal of the registry once', () => {
    expect(Object.values(errorGroups).flat()).to.have.members(Object.keys(errors))
    const rows = rowsOf(pageText('errors.md'), 'status', 'error', 'code', 'meaning', 'what to do')
    expect(
      rows.map(([status, error, code]) => `${Number.parseInt(status!, 10)} ${error} ${code}`),
    ).to.have.members(
      Object.values(errors).map(
        (entry) => `${entry.status} ${entry.error} ${'code' in entry ? entry.code : ''}`,
      ),
    )
  })
})

describe('the advice about errors', () => {
  const page = pageText('errors.md')
  const rows = [
    ...rowsOf(page, 'status', 'error', 'code', 'meaning', 'what to do'),
    ...rowsOf(page, 'status', 'error', 'meaning', 'what to do'),
  ]

  it('has a cause and a cure for each', () => {
    for (const row of rows) {
      for (const cell of row.slice(-2)) expect(cell, row[1]).to.match(/^.+[.]$/)
    }
  })

  it('names operations that there are', () => {
    const named = [...page.matchAll(/`(GET|POST|PATCH|DELETE) (\/[^`?]*)`/g)]
    expect(named).to.have.length.above(8)
    const paths: Record<string, object> = openApi.paths
    for (const [operation, method = '', path = ''] of named)
      expect(paths[path], operation).to.have.property(method.toLowerCase())
  })

  it('says of each status whether to send again', () => {
    const told = rowsOf(page, 'status', 'send it again').flatMap(([statuses = '']) => statuses.split(', '))
    const answered = new Set(rows.map(([status = '']) => status.slice(0, 3)))
    expect(told).to.have.members([...answered, 'no answer'])
  })
})

describe('the reference of analytics', () => {
  it('defines every figure that is answered, and no other', () => {
    const rows = rowsOf(section(pageText('analytics.md'), 'Figures'), 'figure', 'definition')
    const defined = rows.flatMap(([figures = '']) => figures.split(', '))
    const { AnalyticsSummary, AnalyticsTimeseries } = responseSchemas
    const answered = new Set([...leavesOf(AnalyticsSummary), ...leavesOf(AnalyticsTimeseries)])
    expect(defined).to.have.members([...answered])
  })

  /** Names of all numbers and histograms. */
  function leavesOf(schema: Schema): string[] {
    const items = schema.items as Schema | undefined
    if (items) return leavesOf(items)
    const properties = (schema.properties ?? {}) as Record<string, Schema>
    return Object.entries(properties).flatMap(([name, member]) => {
      if (member.type === 'integer' || member.type === 'number') return [name]
      const isHistogram = '+Inf' in ((member.properties ?? {}) as object)
      return isHistogram ? [name] : leavesOf(member)
    })
  }
})
