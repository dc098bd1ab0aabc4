import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { closedFolder, giveTo, POSTGRES, runAs, userOf } from '../../internal/embedded/server-user.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('the user that a server runs as', () => {
  const user = process.getuid?.() === 0 ? userOf(POSTGRES) : undefined

  it('is ourselves unless we are root', () => {
    if (user !== undefined) {
      expect(user.uid).to.be.above(0)
      return
    }
    expect(userOf(POSTGRES)).to.equal(undefined)
    expect(runAs(undefined, 'postgres', ['-D', '/data'], ['/data'])).to.deep.equal({
      command: 'postgres',
      args: ['-D', '/data'],
    })
  })

  it('reaches programs and data below a folder that is closed to it', function () {
    if (user === undefined) this.skip()
    const closed = join(tempFolder(), 'closed')
    mkdirSync(closed)
    chmodSync(closed, 0o700)
    const program = join(closed, 'program')
    // As Postgres does: it is executed, and asks access(2) about itself.
    writeFileSync(
      program,
      '#!/bin/sh\nexec "$1" -e \'fs.accessSync(process.argv[1], fs.constants.X_OK); console.log(process.getuid())\' "$0"\n',
    )
    chmodSync(program, 0o755)
    expect(closedFolder(user, program)).to.equal(closed)
    const { command, args, ...as } = runAs(user, program, [process.execPath], [closed])
    expect(execFileSync(command, args, { ...as, encoding: 'utf8' }).trim()).to.equal(String(user.uid))
  })

  it('is the owner of what it is given', function () {
    if (user === undefined) this.skip()
    const folder = tempFolder()
    writeFileSync(join(folder, 'file'), '')
    giveTo(user, folder)
    expect([statSync(folder).uid, statSync(join(folder, 'file')).uid]).to.deep.equal([user.uid, user.uid])
  })

  it('gets what root copied into its folder, and nothing that a link names', function () {
    if (user === undefined) this.skip()
    const [folder, elsewhere] = [tempFolder(), join(tempFolder(), 'of-root')]
    giveTo(user, folder)
    for (const file of [elsewhere, join(folder, 'copied')]) writeFileSync(file, '')
    symlinkSync(elsewhere, join(folder, 'link'))
    giveTo(user, folder)
    expect(lstatSync(join(folder, 'copied')).uid).to.equal(user.uid)
    expect(lstatSync(join(folder, 'link')).uid).to.equal(user.uid)
    expect(lstatSync(elsewhere).uid).to.equal(0)
  })
})
