/** How `penstock` ends when it did not do what it was asked. */
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { tempFolder } from '../../support/temp-folders.ts'
import { Cli } from '../built.ts'
import { walk } from './walk.ts'

describe('an error of penstock', function () {
  this.timeout(180_000)
  const walker = walk()
  const away = () => walker.cli.with({ PENSTOCK_URL: 'http://127.0.0.1:9', PENSTOCK_API_KEY: 'k' })

  it('is one line that names what is wrong, and has its exit code', async () => {
    const missing = join(walker.home, 'missing.json')
    const list = walker.file('list.json', '[]')
    const cases: [string[], number, string][] = [
      [[], 2, 'say what to do: penstock --help'],
      [['nothing'], 2, "unknown command 'nothing'"],
      [['buffers', 'get'], 2, "missing required argument 'buffer'"],
      [
        ['dlq', 'ls', '--limit', '501'],
        2,
        "option '--limit <n>' argument '501' is invalid. It must be a whole number from 1 to 500.",
      ],
      [['dlq', 'retry'], 2, 'give ids of dead letters, or --all-of a buffer'],
      [['buffers', 'create', missing], 2, `cannot read ${missing}: there is no such file`],
      [['buffers', 'create', list], 2, `${list}: is no JSON object`],
      [['buffers', 'get', '..'], 2, 'bufferId must not be empty, "." or ".."'],
      [['send', 'p', 'b', missing], 2, `cannot read ${missing}: there is no such file`],
      [['send', 'p', 'b', `${missing}.ndjson`], 2, `cannot read ${missing}.ndjson: there is no such file`],
      [['send', 'p', 'b', '--header', 'x'], 2, '--header must be "name: value"'],
      [['send', 'p', 'b', '--sign'], 2, 'PENSTOCK_SOURCE_SECRET is not set'],
      [
        ['login', '--url', 'nowhere'],
        2,
        'url must be an http or https address without credentials, query or fragment',
      ],
    ]
    for (const [args, code, message] of cases) {
      const ended = await walker.withKey.run(args)
      expect(ended, args.join(' ')).to.deep.equal({ code, stdout: '', stderr: `penstock: ${message}\n` })
    }
  })

  it('is JSON with --json', async () => {
    const { code, stderr } = await walker.withKey.run(['dlq', 'show', 'dlq_0', '--json'])
    expect(code).to.equal(4)
    const { error, exitCode, status, requestId } = JSON.parse(stderr)
    expect({ exitCode, status }).to.deep.equal({ exitCode: 4, status: 404 })
    expect(error).to.include('dead letter dlq_0: 404')
    expect(requestId).to.be.a('string')
  })

  it('says that there is no key', async () => {
    const { code, stderr } = await new Cli({ HOME: tempFolder('nobody') }).run(['whoami'])
    expect([code, stderr]).to.deep.equal([
      3,
      'penstock: no key: run penstock login, or set PENSTOCK_URL and PENSTOCK_API_KEY\n',
    ])
  })

  it('says that the service does not answer', async () => {
    const { code, stderr } = await away().run(['whoami'])
    expect(code).to.equal(5)
    expect(stderr).to.match(/^penstock: no answer from http:\/\/127\.0\.0\.1:9 after 3 attempts: [^\n]+\n$/)
  })
})
