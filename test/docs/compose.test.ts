import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parse } from 'yaml'
import { readConfig } from '../../cmd/config/config.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PAGE = readFileSync(join(ROOT, 'docs', 'guide', 'containers.md'), 'utf8')

interface Service {
  command?: string[]
  environment?: Record<string, string>
  ports?: string[]
  volumes?: string[]
  depends_on?: Record<string, unknown>
  stop_grace_period?: string
}

interface Composition {
  services: Record<string, Service>
  volumes: Record<string, null>
}

/** What the page puts into `.env`, with values of the same form. */
const ENV: Record<string, string> = {
  NATS_PASSWORD: 'n'.repeat(48),
  POSTGRES_PASSWORD: 'p'.repeat(48),
  PENSTOCK_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  PENSTOCK_OWNER_KEYS: `acme=svk_${'0'.repeat(48)}`,
}

/** `${NAME}`, `${NAME:-default}` and `${NAME:?why}`, as Compose replaces them. */
function interpolated(text: string, env: Record<string, string>): string {
  return text.replace(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, kind: string | undefined, rest) => {
      const value = env[name]
      if (value !== undefined) return value
      if (kind === '-') return rest
      throw new Error(`${name} is not set`)
    },
  )
}

function composition(file: string, env: Record<string, string> = {}): Composition {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const code = text.replace(/^\s*#.*$/gm, '')
  return parse(interpolated(code, env), { merge: true })
}

const FILES: [string, Record<string, string>][] = [
  ['compose.yaml', {}],
  ['compose.cluster.yaml', ENV],
]

describe('the Compose files', () => {
  for (const [file, env] of FILES) {
    const { services, volumes } = composition(file, env)
    const ours = Object.entries(services).filter(([, { environment = {} }]) =>
      Object.keys(environment).some((name) => name.startsWith('PENSTOCK_')),
    )

    it(`${file}: give each program variables that it takes`, () => {
      expect(ours.length).to.be.above(0)
      for (const [name, { command: [role = 'penstock'] = [], environment = {} }] of ours) {
        const config = readConfig(environment, role as Parameters<typeof readConfig>[1])
        expect(config.role, name).to.equal(role)
      }
    })

    it(`${file}: open ports to this machine alone`, () => {
      const ports = Object.values(services).flatMap(({ ports = [] }) => ports)
      expect(ports.length).to.be.above(0)
      for (const port of ports) expect(port).to.match(/^127\.0\.0\.1:\d+:(8080|9464)$/)
      expect(new Set(ports.map((port) => port.split(':')[1])).size).to.equal(ports.length)
    })

    it(`${file}: name what is there, and leave the time of a drain`, () => {
      for (const [name, { depends_on = {}, volumes: mounted = [] }] of Object.entries(services)) {
        expect(services, name).to.include.all.keys(name, ...Object.keys(depends_on))
        for (const mount of mounted) expect(volumes, name).to.have.property(mount.split(':')[0]!)
      }
      for (const [name, { stop_grace_period }] of ours) expect(stop_grace_period, name).to.equal('20s')
    })
  }

  it('ask for every secret that the page makes, and for no other', () => {
    const made = [...PAGE.matchAll(/^(\w+)=.*\$\(openssl/gm)].map(([, name = '']) => name)
    expect(made).to.have.members(Object.keys(ENV))
    for (const name of made) {
      const { [name]: _, ...others } = ENV
      expect(() => composition('compose.cluster.yaml', others), name).to.throw(name)
    }
  })

  it('give all roles the same servers, and the page the addresses', () => {
    const { services } = composition('compose.cluster.yaml', ENV)
    const roles = Object.values(services).filter(({ command: [role = ''] = [] }) =>
      ['admin', 'ingress', 'actor'].includes(role),
    )
    expect(roles).to.have.length(5)
    for (const variable of ['PENSTOCK_NATS_URL', 'PENSTOCK_DATABASE_URL', 'PENSTOCK_SECRET_KEY'])
      expect(new Set(roles.map(({ environment }) => environment?.[variable])).size, variable).to.equal(1)
    for (const { ports = [] } of roles)
      for (const port of ports) expect(PAGE).to.include(`http://127.0.0.1:${port.split(':')[1]}`)
  })
})
