/** `node cmd/crd/main.ts`: writes the checked-in definition of the Buffer resource below `crds/`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CRD_FILE_NAME, crdDocument } from '../../operator/crd/document.ts'

writeFileSync(join(import.meta.dirname, '..', '..', 'crds', CRD_FILE_NAME), crdDocument())
