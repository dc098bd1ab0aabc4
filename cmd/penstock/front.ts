/**
 * A further process of `npm start` that takes requests, webhooks and management, on the port of the first. Its arguments: the
 * address of the first one's receiver, or `-`, and the ops addresses of the actors.
 */
import { ownRequests } from '../../internal/http/own-requests.ts'
import { backendsOfCluster } from '../wiring/backends.ts'
import { runProgram } from '../wiring/program.ts'
import { localPayments } from './local-payments.ts'
import { refuseTroublesAt, tableWith } from './process-shards.ts'
import { forwardTo } from './shared-receiver.ts'

const [receiver = '-', ...actors] = process.argv.slice(2)

runProgram({
  role: 'ingress',
  ingress: true,
  admin: true,
  actor: false,
  backends: backendsOfCluster,
  prepare: async () => ({
    shards: () => refuseTroublesAt(actors),
    table: (own) => tableWith(own, actors),
  }),
  port: () => 'joining',
  ownProvider: localPayments,
  routes: ({ config }) => (receiver === '-' ? [] : [ownRequests(config.host), forwardTo(receiver)]),
})
