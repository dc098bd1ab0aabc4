import { dirname } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { shell, shellBlocks } from '../support/shell-commands.ts'

/** The commands of docs/operations/runbooks.md, exactly as they stand there but for a time. */
describe('the commands of the runbooks', function () {
  this.timeout(120_000)
  let installation: Installation

  before(async () => {
    installation = await createInstallation({ shared: true })
    await installation.start()
  })
  after(() => installation.stop())

  it('remove dead letters that are older than they say, and no others', async () => {
    const api = installation.api()
    const { customerId, key } = api
    const projectId = await api.createProject()
    await api.createBuffer(projectId, 'failing', {
      batch: { maxItems: 1 },
      throughput: { maxAttempts: 1 },
      delivery: { url: 'http://127.0.0.1:9/' },
    })
    const deadLetters = async () => {
      const headers = { 'X-API-Key': key }
      const answer = await fetch(`${installation.service.url}/v1/dlq?customerId=${customerId}`, { headers })
      return ((await answer.json()) as unknown[]).length
    }
    for (const n of [1, 2]) await api.ingest(projectId, 'failing', { group: 'g', n })
    await eventually(async () => expect(await deadLetters()).to.equal(2))

    const [commands = ''] = shellBlocks('docs/operations/runbooks.md', '## Dead letters that grow')
    expect(commands).to.include("'30 days ago'")
    const run = async (text: string) => {
      const { code, output } = await shell(text, {
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        P: installation.service.url,
        KEY: key!,
        CUSTOMER: customerId,
      })
      expect(code, output).to.equal(0)
    }
    await run(commands)
    expect(await deadLetters()).to.equal(2)
    await run(commands.replace('30 days ago', '1 hour'))
    expect(await deadLetters()).to.equal(0)
  })
})
