/** As much of CycloneDX 1.5 as is written here. */

export interface License {
  readonly license: { readonly id: string } | { readonly name: string }
}

export interface Component {
  readonly 'bom-ref': string
  readonly type: 'application' | 'library' | 'file' | 'container'
  readonly name: string
  readonly version: string
  readonly purl?: string
  readonly licenses?: readonly (License | { readonly expression: string })[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  readonly components?: readonly Component[]
}

export interface Dependency {
  readonly ref: string
  readonly dependsOn: readonly string[]
}

export interface Bom {
  readonly bomFormat: 'CycloneDX'
  readonly specVersion: string
  readonly metadata: { readonly component: Component } & Record<string, unknown>
  readonly components: readonly Component[]
  readonly dependencies: readonly Dependency[]
  /** Of which components it is known that not everything is listed. */
  readonly compositions?: readonly {
    readonly aggregate: 'incomplete'
    readonly assemblies: readonly string[]
  }[]
}
