/** kube-score on what the chart renders: no finding but those that are excused here. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip, run } from '../kube/kube.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { chart, helmOk, leastCluster, leastLocal, type Values, valuesFile, valuesOfThePage } from './helm.ts'
import { exposed } from './matrix.ts'

/** Findings that are meant, each with the reason. */
const EXCUSED = {
  'CPU limit is not set': 'a limit throttles what the node has to spare, and with it every answer',
  'ImagePullPolicy is not set to Always':
    'versions of the image do not change: a node that has one needs no registry',
  'The container is running with a low user ID':
    'the user of the official node image, which knows it by name',
  'The container running with a low group ID': 'as its user',
  'Deployment does not have a host podAntiAffinity set': 'topologySpreadConstraints spread the pods',
  'Deployment few replicas': 'one operator is enough where nobody has to wait for another, as in a trial',
}

/** As OpenShift wants it, which gives each namespace users of its own. */
const openShift: Values = {
  podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null },
  ...exposed('local'),
}

const RENDERINGS: Record<string, readonly (string | Values)[]> = {
  'the least values of a cluster': [leastCluster],
  'the least values of one pod': [leastLocal],
  'values-local.yaml': [valuesFile('local')],
  'values-production.yaml': [valuesFile('production')],
  'TLS in front, Secrets of a vault, nodes with taints': [valuesOfThePage()],
  'one pod behind an Ingress, without a fixed user': [valuesFile('local'), openShift],
}

describe('helm lint and kube-score on the chart', function () {
  this.timeout(120_000)
  let cluster: Kube
  const met = new Set<string>()
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  for (const [what, values] of Object.entries(RENDERINGS)) {
    it(`finds nothing that is not excused: ${what}`, async () => {
      await helmOk(cluster, ['lint', '--strict', chart], { values })
      const findings = await findingsOf(cluster, values)
      for (const { text } of findings) met.add(text)
      expect(findings.filter(({ text }) => !(text in EXCUSED))).to.deep.equal([])
    })
  }

  it('finds all that is excused', () => {
    expect([...met].sort()).to.deep.equal(Object.keys(EXCUSED).sort())
  })

  it('finds what is left out', async () => {
    const careless = { actor: { resources: { limits: { memory: null } } } }
    const findings = await findingsOf(cluster, [leastCluster, careless])
    expect(findings).to.deep.include({
      object: 'p-penstock-actor/ns apps/v1/Deployment',
      text: 'Memory limit is not set',
    })
  })
})

interface Finding {
  readonly object: string
  readonly text: string
}

async function findingsOf(cluster: Kube, values: readonly (string | Values)[]): Promise<Finding[]> {
  const text = await helmOk(cluster, ['template', 'p', chart], { values, namespace: 'ns' })
  const file = join(tempFolder('kube-score'), 'rendered.yaml')
  writeFileSync(file, text)
  // Its exit code tells of findings, too.
  const { stdout, stderr } = await run(join(cluster.bin, 'kube-score'), [
    'score',
    '--output-format',
    'ci',
    file,
  ])
  const lines = stdout.split('\n').filter((line) => line !== '')
  if (lines.length === 0) throw new Error(`kube-score judged nothing: ${stderr}`)
  return lines.filter((line) => /^\[(CRITICAL|WARNING)\]/.test(line)).map(findingOf)
}

/** `[CRITICAL] object: (container) text`; the container is left out where the whole object is meant. */
function findingOf(line: string): Finding {
  const match = /^\[\w+\] (?<object>[^:]+): (?:\([^)]+\) )?(?<text>.+)$/.exec(line)
  if (!match) throw new Error(`kube-score says what nobody understands: ${line}`)
  const { object = '', text = '' } = match.groups ?? {}
  return { object, text }
}
