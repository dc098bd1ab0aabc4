/** `null` takes a value away. What cannot do without one says so, instead of failing somewhere within a template. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { parse, parseAllDocuments } from 'yaml'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { chart, helm, leastLocal, type Values } from './helm.ts'
import { ALL_APIS, everything } from './matrix.ts'

const defaults: Values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))

describe('a value that is taken away', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  for (const section of Object.keys(defaults)) {
    it(`is missed by name, or not needed: ${section}`, async () => {
      for (const path of pathsOf(defaults[section], [section])) {
        const name = path.join('.')
        const least = section === 'local' ? leastLocal : everything
        const { code, stdout, stderr } = await helm(cluster, ['template', 'p', chart, ...ALL_APIS], {
          values: [least, path.reduceRight((inner: unknown, key) => ({ [key]: inner }), null) as Values],
        })
        if (code === 0) expect(nulls(stdout), name).to.deep.equal([])
        else
          expect(stderr, name).to.match(
            RegExp(`missing property '${path.at(-1)}'|${name}.* (is|are) required`),
          )
      }
    })
  }
})

/** Of `value` itself and of all in it; lists, what has no fixed fields, and a pair of patches count as one. */
function pathsOf(value: unknown, path: readonly string[]): (readonly string[])[] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [path]
  if (Object.keys(value).join() === 'merge,patch') return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))]
}

/** The fields of a rendering that have no value, each with its object. */
function nulls(rendering: string): string[] {
  const found: string[] = []
  for (const document of parseAllDocuments(rendering)) {
    const text = JSON.stringify(document.toJS())
    // The definition of Buffers names the type of what may be null.
    if (!text.includes('CustomResourceDefinition')) found.push(...(text.match(/"\w+":(null|"<nil>")/g) ?? []))
  }
  return found
}
