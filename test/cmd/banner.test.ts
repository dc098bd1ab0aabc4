import { expect } from 'chai'
import { describe, it } from 'mocha'
import { hostToAsk, ownerLines } from '../../cmd/penstock/banner.ts'

describe('what npm start tells', () => {
  it('names an address that can be asked, also where it listens on all', () => {
    expect(hostToAsk('127.0.0.1')).to.equal('127.0.0.1')
    expect(hostToAsk('0.0.0.0')).to.equal('127.0.0.1')
    expect(hostToAsk('::')).to.equal('[::1]')
    expect(hostToAsk('fd00::7')).to.equal('[fd00::7]')
    expect(hostToAsk('penstock.internal')).to.equal('penstock.internal')
  })

  it('names the way in until a key was used, with the file of the key while there is one', () => {
    const url = 'http://127.0.0.1:8080'
    expect(ownerLines(url, { keyFile: '/d/owner-key', isNew: false })).to.equal('')
    const lines = ownerLines(url, { keyFile: '/d/owner-key', isNew: true })
    expect(lines).to.include("$(cat '/d/owner-key')").and.include('npm run account -- local')
    const without = ownerLines(url, { keyFile: undefined, isNew: true })
    expect(without).to.include('npm run account -- local').and.not.include('curl')
  })
})
