/**
 * What an install prints, pasted as it is, for each way in from outside of the cluster. The test plays whoever gives out
 * addresses, and curl finds at any address what would run in the pod.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { freePort } from '../../internal/embedded/port.ts'
import { installDefinitions } from '../kube/definitions.ts'
import { type Kube, kubectlOk, kubeOrSkip, namespace } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import type { Service } from '../support/service.ts'
import { Shell } from '../support/shell-commands.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { chart, helm, helmOk, type Manifest, type Values, valuesFile } from './helm.ts'
import { forwarding, playOperator, playService } from './pods.ts'

const HOST = 'hooks.example.com'
const KEY = `svk_${'1'.repeat(48)}`
const ADDRESS = { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } }
const ACCEPTED = {
  parents: [
    {
      parentRef: { name: 'edge' },
      controllerName: 'example.com/edge',
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          reason: 'Accepted',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  ],
}
const parentRefs = [{ name: 'edge' }]

interface Way {
  readonly values: Values
  /** Whose status says that the way is there. */
  readonly object?: string
  readonly status?: Manifest
  readonly url: string
}

const WAYS: Record<string, Way> = {
  'an Ingress with a certificate': {
    values: { expose: { ingress: { enabled: true, hosts: [HOST], tls: [{ secretName: 'tls' }] } } },
    object: 'ingress/p-penstock-local',
    status: ADDRESS,
    url: `https://${HOST}`,
  },
  'an Ingress for any host': {
    values: { expose: { ingress: { enabled: true } } },
    object: 'ingress/p-penstock-local',
    status: ADDRESS,
    url: 'http://192.0.2.7',
  },
  'an HTTPRoute': {
    values: { expose: { httpRoute: { enabled: true, hostnames: ['*.example.com'], parentRefs } } },
    object: 'httproute/p-penstock-local',
    status: ACCEPTED,
    url: 'https://penstock.example.com',
  },
  'a load balancer': {
    values: { service: { type: 'LoadBalancer', port: 8443 } },
    object: 'service/p-penstock-local',
    status: ADDRESS,
    url: 'http://192.0.2.7:8443',
  },
  'a port of this machine': { values: {}, url: 'http://127.0.0.1:8080' },
}

describe('what an install prints', function () {
  this.timeout(240_000)
  let cluster: Kube
  let url: string
  let service: Service
  let tls: Server
  let ns: string
  const ended: Service[] = []
  before(async function () {
    cluster = await kubeOrSkip(this)
    await installDefinitions(cluster, 'gateway')
    const definition = join(import.meta.dirname, '../../crds/buffering.penstock.dev_buffers.yaml')
    await kubectlOk(cluster, ['apply', '--server-side', '--force-conflicts', '-f', definition])
    url = `http://127.0.0.1:${await freePort()}`
    service = await playService(url, KEY)
    ended.push(service)
    tls = await terminator(Number(new URL(url).port))
  })
  after(async () => {
    tls?.close()
    for (const each of ended) {
      each.child.kill('SIGKILL')
      await each.exited()
    }
  })

  for (const [what, way] of Object.entries(WAYS)) {
    it(`waits for the address, and works as pasted: ${what}`, async () => {
      ns = await namespace(cluster, 'notes')
      const commands = await install(way)
      const operator = await playOperator(cluster, {
        namespace: ns,
        release: 'p-penstock',
        url,
        env: { PENSTOCK_WATCH_NAMESPACES: ns },
      })
      ended.push(operator)
      const shell = shellAt()
      try {
        let isDone = false
        const pasted = shell.paste(commands).finally(() => {
          isDone = true
        })
        pasted.catch(() => {})
        if (way.object) {
          expect(isDone, 'before there is an address').to.equal(false)
          const patch = JSON.stringify({ status: way.status })
          const args = ['patch', way.object, '--subresource=status', '--type=merge', '-p', patch]
          await kubectlOk(cluster, ['-n', ns, ...args])
        }
        const output = await pasted
        expect(output).to.include('buffer.buffering.penstock.dev/shop-orders condition met')
        expect(output).to.include('"status":"accepted"')
        expect(output).to.include('"payload":{"customer":"ada","order":1}')
        expect((await shell.paste('echo "at $ADMIN, $INGRESS"')).trim()).to.equal(`at ${way.url}, ${way.url}`)
      } finally {
        await shell.close()
        await kubectlOk(cluster, ['-n', ns, 'delete', 'buffer', '--all', '--timeout=60s'])
        operator.child.kill('SIGKILL')
        await helmOk(cluster, ['uninstall', 'p'], { namespace: ns })
        await forget()
      }
    })
  }

  const unsafe: readonly [string, keyof typeof WAYS, RegExp][] = [
    ['a certificate is not trusted', 'an HTTPRoute', /certificate/],
    ['the way in only redirects', 'an Ingress for any host', /redirects/],
  ]
  for (const [what, name, complaint] of unsafe) {
    it(`keeps the key and says why while ${what}`, async () => {
      ns = await namespace(cluster, 'notes')
      const way = WAYS[name]!
      const commands = await install(way)
      const args = ['patch', way.object!, '--subresource=status', '--type=merge']
      await kubectlOk(cluster, ['-n', ns, ...args, '-p', JSON.stringify({ status: way.status })])
      const keys: unknown[] = []
      const redirecting = createHttpServer(({ headers }, response) => {
        if (headers['x-api-key'] !== undefined) keys.push(headers['x-api-key'])
        response.writeHead(308, { location: `https://${HOST}/` }).end()
      })
      redirecting.listen(0, '127.0.0.1')
      await once(redirecting, 'listening')
      const shell = shellAt({ plain: (redirecting.address() as AddressInfo).port, trusts: false })
      try {
        shell.paste(commands).catch(() => {})
        const complaints = () => shell.output.split('\n').filter((line) => complaint.test(line)).length
        await eventually(() => complaints() >= 2, { timeoutMs: 60_000, everyMs: 100 })
        expect(keys).to.deep.equal([])
        expect(shell.output).not.to.include('"projectId"')
      } finally {
        await shell.close()
        redirecting.close()
        await helmOk(cluster, ['uninstall', 'p'], { namespace: ns })
      }
    })
  }

  /** Installs the local values, and gives what is to be pasted of what that prints. */
  const install = async ({ values }: Way): Promise<string> => {
    await kubectlOk(cluster, [
      '-n',
      ns,
      'create',
      'secret',
      'generic',
      'keys',
      `--from-literal=owner-keys=local=${KEY}`,
    ])
    const rest = {
      crds: { install: false },
      operator: { watchNamespaces: [ns] },
      ownerKeysSecret: { name: 'keys' },
    }
    const layers = [valuesFile('local'), rest, { local: { ...values, persistence: { enabled: false } } }]
    await helmOk(cluster, ['install', 'p', chart], { namespace: ns, values: layers })
    await eventually(
      async () => {
        const args = [
          '-n',
          ns,
          'get',
          'statefulset',
          'p-penstock-local',
          '-o',
          'jsonpath={.status.readyReplicas}',
        ]
        return (await kubectlOk(cluster, args)) === '1'
      },
      { timeoutMs: 60_000, everyMs: 200 },
    )
    const notes = (await helm(cluster, ['get', 'notes', 'p'], { namespace: ns })).stdout
    const commands = notes.slice(
      notes.indexOf('from this machine:\n') + 19,
      notes.indexOf('Whether all of it works'),
    )
    // Within the pod, the service listens on the port that it has here.
    return commands.replace('http://127.0.0.1:8080/local', `${url}/local`)
  }

  /** The next install makes the same buffer. */
  const forget = async () => {
    const headers = { 'x-api-key': KEY }
    for (const path of ['buffers/shop-orders', 'projects/shop'])
      await fetch(`${url}/v1/admin/${path}`, { method: 'DELETE', headers })
  }

  /** `plain`: a port for all that is not HTTPS, if not the service's. `trusts`: any certificate. */
  const shellAt = ({ plain = Number(new URL(url).port), trusts = true } = {}) => {
    const home = tempFolder('home')
    const { port: secure } = tls.address() as { port: number }
    const routes = [`:443:127.0.0.1:${secure}`, `::127.0.0.1:${plain}`]
    const lines = routes.map((route) => `connect-to = "${route}"`)
    writeFileSync(join(home, '.curlrc'), `${lines.join('\n')}\n${trusts ? 'insecure\n' : ''}`)
    const path = `${forwarding(cluster)}:${cluster.bin}:${process.env.PATH}`
    return new Shell({ cwd: home, env: { PATH: path, HOME: home, KUBECONFIG: cluster.kubeconfig } })
  }
})

/** Takes TLS off in front of a port. */
async function terminator(port: number): Promise<Server> {
  const folder = tempFolder('tls')
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert, '-subj', `/CN=${HOST}`], {
    stdio: 'ignore',
  })
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (socket) => {
    const inner = connect(port, '127.0.0.1')
    for (const each of [socket, inner]) each.on('error', () => inner.destroy())
    socket.pipe(inner).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
