/** The operator as in a pod, for a test that mounts its service account (`kubernetes/mount.ts`). */
import { runOperator } from '../../cmd/operator/program.ts'

await runOperator(process.env.TEST_SERVICE_ACCOUNT)
