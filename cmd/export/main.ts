/** `npm run crd -- export` for the image, which lacks what writes the definition: `cmd/role.sh export`. */
import { exportBuffers } from './export.ts'

process.exitCode = await exportBuffers(process.argv.slice(2))
