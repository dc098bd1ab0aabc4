import { expect } from 'chai'
import { describe, it } from 'mocha'

import { welcomeLines } from '../../cmd/penstock/banner.ts'
import { pastedPage, patient, received } from './pasted-page.ts'

describe('the three lines of the README', function () {
  this.timeout(60_000)
  const page = pastedPage('README.md')

  it('make a buffer, send a webhook and show the batch that came out', async () => {
    const output = await page.paste('Start', (commands) => patient(commands, ['sleep 2', 'sleep 6']))
    const [request, ...others] = received(output)
    expect(others).to.deep.equal([])
    expect(request?.body.items.map(({ payload }) => payload)).to.deep.equal([{ customer: 'ada', order: 1 }])
  })

  it('are those that the first start prints', () => {
    const printed = welcomeLines({ url: '$P', keyFile: '.penstock/owner-key' })
    const plain = (text: string) =>
      text
        .replaceAll(" -H 'Content-Type: application/json'", '')
        .replaceAll("$(cat '.penstock/owner-key')", '$KEY')
        .replace(/[\s']/g, '')
    const [, ...lines] = page.sections
      .get('Start')!
      .trimEnd()
      .split(/\n(?! )/)
    expect(lines).to.have.length(3)
    expect(printed.split('\n').map(plain)).to.include.members(lines.map(plain))
  })

  it('are all its commands', () => {
    expect(page.pasted).to.deep.equal([...page.sections.keys()])
  })
})
