/** Sends attempts that hang, until each is over, and prints their results. `node few-sockets-main.ts <url> <attempts>` */
import { batch, newClient, target } from './fixture.ts'

const [, , url = '', attempts = '0'] = process.argv
const client = newClient({ deadlineMs: 2_000 })
const results = await Promise.all(
  Array.from({ length: Number(attempts) }, (_, n) =>
    client.send(target(url), `k${n}`, batch, { flow: `f${n}`, customerId: 'c' }),
  ),
)
process.stdout.write(JSON.stringify(results))
await client.close()
