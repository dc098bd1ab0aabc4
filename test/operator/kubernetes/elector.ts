/**
 * A replica that only stands for election, as a process of its own: `elector.ts <kubeconfig> <namespace> <identity>`. It
 * says `leading` and `lost` on standard output and gives the lease back on SIGTERM.
 */
import { KubeConfig } from '@kubernetes/client-node'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { kubeconfigAccess } from '../../../operator/kubernetes/kubeconfig.ts'
import { LeaderElection } from '../../../operator/kubernetes/leader-election.ts'

const [kubeconfig = '', namespace = '', identity = ''] = process.argv.slice(2)
const config = new KubeConfig()
config.loadFromFile(kubeconfig)
const api = new ApiServer(kubeconfigAccess(config))
const say = (line: string) => process.stdout.write(`${line}\n`)
const election = new LeaderElection({
  api,
  namespace,
  name: 'penstock-operator',
  identity,
  clock: systemClock(),
  randomness: systemRandomness(),
  log: { info: () => {}, warn: (fields) => process.stderr.write(`${fields.err}\n`) },
})

process.on('SIGTERM', async () => {
  await election.stop()
  process.exit(0)
})
election.run(
  () => say('leading'),
  (error) => {
    say(`lost: ${error.message}`)
    process.exit(1)
  },
)
say('standing')
