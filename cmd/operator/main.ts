/** The operator, as it runs in a pod or beside a kubeconfig. */
import { runOperator } from './program.ts'

await runOperator()
