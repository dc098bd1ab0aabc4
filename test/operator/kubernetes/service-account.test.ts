import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { hasStatus } from '../../../operator/kubernetes/api-error.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { isInPod, serviceAccountAccess } from '../../../operator/kubernetes/service-account.ts'
import { type Kube, kubectlOk, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { type Mount, mountServiceAccount } from './mount.ts'

const MINUTE = 60_000

describe('the access of a pod', function () {
  this.timeout(120_000)

  let kube: Kube
  let space: string
  let ms = 0
  const clock = { ...systemClock(), monotonic: () => ms }

  before(async function () {
    kube = await kubeOrSkip(this)
    space = await namespace(kube, 'account')
    for (const account of ['first', 'second']) await kubectlOk(kube, ['-n', space, 'create', 'sa', account])
  })

  it('is that of its service account, and goes on with a renewed token after a minute', async () => {
    const mount = await mountServiceAccount(kube, space, 'first')
    const access = serviceAccountAccess(mount.env, clock, mount.directory)
    expect(access.namespace).to.equal(space)
    const api = new ApiServer(access)
    try {
      expect(await whoAmI(api)).to.equal(`system:serviceaccount:${space}:first`)
      const renewed = await mountServiceAccount(kube, space, 'second')
      put(mount, 'token', await tokenOf(renewed))
      ms += MINUTE - 1
      expect(await whoAmI(api)).to.equal(`system:serviceaccount:${space}:first`)
      ms += 1
      expect(await whoAmI(api)).to.equal(`system:serviceaccount:${space}:second`)

      rmSync(join(mount.directory, 'token'))
      ms += MINUTE
      expect(await whoAmI(api), 'the last one that was there').to.equal(
        `system:serviceaccount:${space}:second`,
      )
      put(mount, 'token', 'of nobody')
      ms += MINUTE
      expect(hasStatus(await failure(whoAmI(api)), 401)).to.equal(true)
    } finally {
      api.close()
    }
  })

  it('trusts the certificate of the mount alone', async () => {
    const mount = await mountServiceAccount(kube, space, 'first')
    put(mount, 'ca.crt', '')
    const api = new ApiServer(serviceAccountAccess(mount.env, clock, mount.directory))
    expect(hasStatus(await failure(whoAmI(api)), 0)).to.equal(true)
    api.close()
  })

  it('names a file that is missing', async () => {
    const directory = tempFolder('empty')
    const env = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
    expect(() => serviceAccountAccess(env, clock, directory)).to.throw(join(directory, 'token'))
  })

  it('reaches an address of either kind', async () => {
    const { directory } = await mountServiceAccount(kube, space, 'first')
    const server = async (host: string) =>
      (await serviceAccountAccess({ KUBERNETES_SERVICE_HOST: host }, clock, directory).connection()).server
    expect(await server('fd00::1')).to.equal('https://[fd00::1]:443')
    expect(await server('10.0.0.1')).to.equal('https://10.0.0.1:443')
  })

  it('is there only without a kubeconfig, and with an address and a token', async () => {
    const { directory, env } = await mountServiceAccount(kube, space, 'first')
    expect(isInPod(env, directory)).to.equal(true)
    expect(isInPod({ ...env, KUBECONFIG: '' }, directory)).to.equal(true)
    expect(isInPod({ ...env, KUBECONFIG: '/some/file' }, directory)).to.equal(false)
    expect(isInPod({}, directory)).to.equal(false)
    const home = tempFolder('home')
    expect(isInPod({ ...env, HOME: home }, directory)).to.equal(true)
    mkdirSync(join(home, '.kube'))
    writeFileSync(join(home, '.kube', 'config'), '')
    expect(isInPod({ ...env, HOME: home }, directory)).to.equal(false)
    expect(isInPod(env, tempFolder('empty'))).to.equal(false)
  })
})

describe('the program of the operator', () => {
  it('loads the package for kubeconfigs only where there is one to read', async () => {
    const program = new URL('../../../cmd/operator/program.ts', import.meta.url).href
    const script = `
      import { registerHooks } from 'node:module'
      const loaded = []
      registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
      await import(${JSON.stringify(program)})
      console.log(JSON.stringify(loaded))`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    const loaded: string[] = JSON.parse(stdout)
    expect(loaded).to.include(program)
    expect(loaded.filter((url) => url.includes('@kubernetes/client-node'))).to.deep.equal([])
  })
})

const put = ({ directory }: Mount, file: string, text: string) => writeFileSync(join(directory, file), text)

const tokenOf = async ({ directory, env }: Mount): Promise<string> => {
  const { headers } = await serviceAccountAccess(env, systemClock(), directory).connection()
  return headers.authorization!.slice('Bearer '.length)
}

async function whoAmI(api: ApiServer): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const answer = await api.request<{ status: { userInfo: { username: string } } }>(
    'POST',
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    { body },
  )
  return answer.status.userInfo.username
}

function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.fail('it was accepted'),
    (error: unknown) => error,
  )
}
