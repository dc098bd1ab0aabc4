/** The software bill of materials of the image, for Linux x64. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { basesOf } from '../pin-base/dockerfile.ts'
import type { Bom } from './cyclonedx.ts'
import { packagesBom } from './packages.ts'
import { baseComponents, serverComponents } from './servers.ts'

/** `root`: of an installed checkout. Rejects when a part of the image is not there to be looked at. */
export async function imageBom(root: string): Promise<Bom> {
  const [packages, servers] = await Promise.all([packagesBom(root), serverComponents(root)])
  const [base] = basesOf(readFileSync(join(root, 'Dockerfile'), 'utf8'))
  const [node, image] = baseComponents(base!)
  const more = [node, image, ...servers]
  const { component } = packages.metadata
  const self = component['bom-ref']
  return {
    ...packages,
    metadata: { ...packages.metadata, component: { ...component, type: 'container', name: 'penstock' } },
    components: [...packages.components, ...more],
    dependencies: packages.dependencies.map((each) =>
      each.ref === self
        ? { ref: self, dependsOn: [...each.dependsOn, ...more.map((one) => one['bom-ref'])] }
        : each,
    ),
    // Its Debian packages are told by those who make it.
    compositions: [{ aggregate: 'incomplete', assemblies: [image['bom-ref']] }],
  }
}
