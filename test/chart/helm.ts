/** Helm as people call it, and what it renders. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { type Kube, type Ran, run } from '../kube/kube.ts'
import { tempFolder } from '../support/temp-folders.ts'

export const chart = join(import.meta.dirname, '..', '..', 'charts', 'penstock')
export const valuesFile = (name: 'local' | 'production') => join(chart, `values-${name}.yaml`)

/** The whole set of values on the chart's page, for a cluster behind an Ingress controller on nodes with taints. */
export function valuesOfThePage(): Values {
  const page = readFileSync(join(chart, 'README.md'), 'utf8')
  return parse(/^# platform.yaml\n(.*?)^```$/ms.exec(page)![1]!)
}

/** Values of which nothing can be left out with `mode: cluster`. */
export const leastCluster: Values = {
  nats: { url: 'nats://nats:4222' },
  database: { url: 'postgres://penstock:$(DATABASE_PASSWORD)@postgres/penstock' },
  encryptionKeySecret: { name: 'keys' },
}
export const leastLocal: Values = { mode: 'local', config: { replicas: 1 } }

export type Values = { readonly [name: string]: unknown }
// biome-ignore lint/suspicious/noExplicitAny: manifests have many shapes, and the API server judges them.
export type Manifest = any

export interface HelmOptions {
  /** Layers of values: files by path, or values themselves; later ones win. */
  values?: readonly (string | Values)[]
  namespace?: string
}

/** Runs helm as system:masters of `cluster`; never rejects. */
export function helm(cluster: Kube, args: readonly string[], options: HelmOptions = {}): Promise<Ran> {
  const { values = [], namespace } = options
  const layers = values.flatMap((layer) => ['--values', typeof layer === 'string' ? layer : fileOf(layer)])
  const where = namespace === undefined ? [] : ['--namespace', namespace]
  return run(join(cluster.bin, 'helm'), ['--kubeconfig', cluster.kubeconfig, ...where, ...args, ...layers])
}

/** JSON is YAML. */
function fileOf(values: Values): string {
  const file = join(tempFolder('values'), 'values.yaml')
  writeFileSync(file, JSON.stringify(values))
  return file
}

/** Its output; rejects with what it said when it fails. */
export async function helmOk(cluster: Kube, args: readonly string[], options?: HelmOptions): Promise<string> {
  const { code, stdout, stderr } = await helm(cluster, args, options)
  if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** That no release is made of the values, for a reason that includes `why`. */
export async function refusedAs(cluster: Kube, values: readonly Values[], why: string): Promise<void> {
  const { code, stderr } = await helm(cluster, ['template', 'p', chart], { values })
  expect(code, stderr).to.equal(1)
  expect(stderr).to.include(why)
}

export interface RenderOptions {
  release?: string
  namespace?: string
  further?: readonly string[]
}

/** All objects of the release, hooks among them. `further`: more arguments. */
export async function render(
  cluster: Kube,
  values: readonly (string | Values)[],
  { release = 'p', namespace = 'ns', further = [] }: RenderOptions = {},
): Promise<Manifest[]> {
  const text = await helmOk(cluster, ['template', release, chart, ...further], { values, namespace })
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? [])
}

/** `kind/name`. */
export function nameOf({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.name}`
}

/** The pod templates of a rendering by the name of what makes the pods. */
export function podsOf(manifests: readonly Manifest[]): Map<string, Manifest> {
  const templates = manifests.flatMap((each): [string, Manifest][] => {
    if (each.kind === 'Pod') return [[nameOf(each), each]]
    return each.spec?.template?.spec?.containers ? [[nameOf(each), each.spec.template]] : []
  })
  return new Map(templates)
}
