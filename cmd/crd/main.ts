/**
 * `npm run crd`: writes the checked-in definition of the Buffer resource below `crds/`, and what is made of it or copied
 * beside it. `npm run crd -- export`: prints the resources that take over buffers as they are (docs/guide/kubernetes.md).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CRD_FILE_NAME, crdDocument } from '../../operator/crd/document.ts'
import { generated } from '../chart/generated.ts'
import { exportBuffers, USAGE } from '../export/export.ts'
import { copies } from './copies.ts'

function writeDefinition(): void {
  writeFileSync(join(import.meta.dirname, '..', '..', 'crds', CRD_FILE_NAME), crdDocument())
  for (const { path, content } of [...generated(), ...copies()]) writeFileSync(path, content)
}

const [command, ...args] = process.argv.slice(2)
if (command === undefined) writeDefinition()
else if (command === 'export') process.exitCode = await exportBuffers(args)
else {
  process.stderr.write(`${USAGE}\n`)
  process.exitCode = 2
}
