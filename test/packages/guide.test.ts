/** The guide to the command line, as it stands there, against a running service. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { EXIT } from '../../packages/cli/src/exit.ts'
import { pastedPage } from '../docs/pasted-page.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { Cli, ROOT } from './built.ts'

const PAGE = readFileSync(join(ROOT, 'docs', 'guide', 'cli.md'), 'utf8')

describe('the guide to the command line', function () {
  this.timeout(300_000)
  let profile: string
  before(() => {
    profile = join(tempFolder('profile'), 'profile.json')
  })
  // Not the profile of whoever runs the tests.
  const page = pastedPage('docs/guide/cli.md', () => ({ PENSTOCK_PROFILE: profile }))

  it('builds the program', async () => {
    expect(await page.paste('Build it')).to.match(/^\d+\.\d+\.\d+\n$/)
  })

  it('logs in', async () => {
    const output = await page.paste('Log in')
    expect(output.match(/^owner of local, all projects, \d+ credits$/gm)).to.have.length(2)
    expect(statSync(profile).mode & 0o777).to.equal(0o600)
  })

  it('makes a buffer', async () => {
    expect(await page.paste('Make a buffer')).to.match(
      /^cli-orders +cli +enabled +http:\/\/127\.0\.0\.1:9\/$/m,
    )
  })

  it('starts a receiver, which answers 500 once', async () => {
    expect(await page.paste('Try a receiver')).to.equal('')
  })

  it('sends webhooks, whose batch comes twice', async () => {
    const output = await page.paste('Send webhooks')
    expect(output).to.include('accepted order-1\naccepted order-2\n')
    const heads = [...output.matchAll(/^(\d+) cli-orders ada: 2 items, (grp:\S+)$/gm)]
    expect(heads.map(([, status]) => status)).to.deep.equal(['500', '200'])
    expect(heads[0]![2]).to.equal(heads[1]![2])
  })

  it('retries a dead letter', async () => {
    const output = await page.paste('Look after dead letters')
    expect(output).to.match(/ dlq_\S+ cli-orders bob: 2 items, max_retries_exceeded, 0 /)
    expect(output)
      .to.include('it ended with 1\n')
      .and.match(/^delivered dlq_\S+: 2 items, 200$/m)
    expect(output.trimEnd().split('\n').at(-1)).to.match(/^DEAD LETTER +BUFFER/)
  })

  it('reads what it did in scripts', async () => {
    const output = await page.paste('Use it in scripts')
    expect(output).to.include('"exitCode":4,"status":404').and.include('it ended with 4\n')
    expect(output).to.include('{"bufferId":"cli-orders","deleted":true}\n')
  })

  it('is a page of which every command is run here', () => {
    expect([...page.sections.keys()]).to.deep.equal(page.pasted)
  })

  it('lists the exit codes that there are, as --help does', async () => {
    const codes = Object.values(EXIT).map(String)
    expect([...PAGE.matchAll(/^\| (\d) \|/gm)].map(([, code]) => code)).to.deep.equal(codes)
    const { stdout } = await new Cli({ HOME: tempFolder('home') }).run(['--help'])
    expect([...stdout.matchAll(/^ {2}(\d) {2}/gm)].map(([, code]) => code)).to.deep.equal(codes)
  })
})
