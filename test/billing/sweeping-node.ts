/** Claims the sweep of the provider `recording` in the database of its argument, says so, and never ends it. */

import { connect } from '../../internal/postgres/connection.ts'
import { createProviderSweeps } from '../../internal/postgres/provider-sweeps.ts'

const db = connect(process.argv[2]!, { max: 2 })
await createProviderSweeps(db).once('recording', 0, () => {
  process.stdout.write('sweeps\n')
  return new Promise(() => setInterval(() => {}, 60_000))
})
