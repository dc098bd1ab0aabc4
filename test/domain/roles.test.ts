import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Role } from '../../internal/domain/model.ts'
import {
  type Action,
  areWithinProjects,
  isRole,
  isWithinRole,
  mayPerform,
  requiredRoles,
  roles,
  rolesFor,
  seesSecrets,
} from '../../internal/domain/roles.ts'

/** The table of docs/reference/api.md, "Roles": columns viewer, member, admin, owner. */
const table: [action: Action, may: string][] = [
  ['read', 'yyyy'],
  ['writeBuffers', 'nyyy'],
  ['writeProjects', 'nnyy'],
  ['writeApiKeys', 'nnyy'],
  ['writeDeadLetters', 'nnyy'],
  ['cancelImmediately', 'nnyy'],
  ['cancelAtPeriodEnd', 'nnny'],
  ['createCustomers', 'nnny'],
  ['addCredits', 'nnyy'],
  ['checkout', 'nnyy'],
  ['readAudit', 'nnyy'],
]

describe('roles', () => {
  for (const [action, may] of table) {
    it(`${action}: ${may}`, () => {
      const found = roles.map((role) => (mayPerform(role, action) ? 'y' : 'n')).join('')
      expect(found).to.equal(may)
    })
  }

  it('are all in the table', () => {
    expect(Object.keys(rolesFor)).to.have.members(table.map(([action]) => action))
  })

  it('are named to whoever lacks them', () => {
    expect(requiredRoles('writeBuffers')).to.equal(
      'Requires one of the following roles: member, admin, owner',
    )
    expect(requiredRoles('cancelAtPeriodEnd')).to.equal('Requires one of the following roles: owner')
  })

  it('hand out at most themselves', () => {
    const order: Role[] = ['viewer', 'member', 'admin', 'owner']
    for (const [i, role] of order.entries()) {
      for (const [j, ceiling] of order.entries()) expect(isWithinRole(role, ceiling)).to.equal(i <= j)
    }
  })

  it('are exactly four names', () => {
    expect(roles.every(isRole)).to.equal(true)
    for (const bad of ['Owner', 'root', '', null, undefined, 0, ['owner']])
      expect(isRole(bad)).to.equal(false)
  })

  it('show secrets to whoever may write them', () => {
    expect(roles.filter(seesSecrets)).to.deep.equal(['member', 'admin', 'owner'])
  })
})

describe('a restriction to projects', () => {
  const cases: [asked: string[] | undefined, own: string[] | undefined, within: boolean][] = [
    [undefined, undefined, true],
    [['a'], undefined, true],
    [undefined, ['a'], false],
    [['a'], ['a', 'b'], true],
    [['a', 'b'], ['a', 'b'], true],
    [['a', 'c'], ['a', 'b'], false],
    [[], ['a'], true],
    [['a'], [], false],
  ]
  for (const [asked, own, within] of cases) {
    it(`of ${asked ?? 'all'} by ${own ?? 'all'} is ${within ? 'within' : 'too broad'}`, () => {
      expect(areWithinProjects(asked, own)).to.equal(within)
    })
  }
})
