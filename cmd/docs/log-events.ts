/** What the events of the logs mean, for docs/reference/metrics.md. A name that no source tells any more is refused. */

export const eventMeanings: Readonly<Record<string, string>> = {
  // Requests
  unavailable: 'A dependency failed a webhook, which was answered 503.',
  'webhooks refused':
    'Webhooks of `bufferId` were refused for `reason`: the first is told at once, `count` of them once a minute. Without `bufferId`: their address names no buffer. `path` and `header`: where a group key was looked for.',
  'webhook accepted': 'A webhook was answered 202; `requestId` is its `X-Request-Id`.',
  'webhook refused': 'A webhook was answered otherwise.',
  'request failed': 'A request was answered 500; `err` has the cause.',
  'the broker lost webhooks that it had acknowledged':
    'The pack at the position `acknowledged` of the inbox is not there. The inbox ends, or goes on, at `end`.',
  'a buffer holds its whole share': 'From now on this node refuses the buffer with 503.',
  'a buffer has room again': 'This node takes webhooks of the buffer again.',
  'a customer holds its whole share': 'From now on this node refuses all buffers of the customer with 503.',
  'a customer has room again': 'This node takes webhooks of the customer again.',
  'audit records were left out':
    'A customer had more than are kept, or memory was full; `records` of all customers.',
  'audit records wait': 'The audit cannot be written now. It is kept in memory, up to a bound.',
  'the certificate of Postgres is not verified':
    'With this `sslmode` whoever stands between reads everything. [Postgres over TLS](configuration.md#postgres-over-tls) has the one that verifies.',
  'a secret cannot be read':
    'Its key is missing, or its text is damaged (`error`). What needs it is refused or held, for this buffer alone.',
  'a secret is short':
    'A secret that signs or verifies has less than 16 bytes (`fields` of the buffer). Whoever sees a signature may find it by trying.',
  'keys of secrets are missing': 'So many rows (`missing`) have secrets of keys that are not configured.',
  'no key of a secret is missing any more': 'All rows can be opened by the configured keys again.',
  'the count of rows without their key waits': 'Postgres did not answer it. The next count follows.',
  'a payment object cannot be used yet':
    'The payment provider told of an object (`kind`, `id`) that cannot be applied: `reason` says why. It is told again.',
  'a payment object is of a stranger':
    'The object names `customerId`, but another customer of the provider pays for it. Nothing was changed.',
  'a second subscription is ended and paid back':
    'A customer had two subscriptions. The one that was paid later was ended at the provider, and what was paid for it went back.',
  'a deleted customer of the payment provider is replaced':
    'Somebody deleted the customer (`gone`) of `customerId` at the provider. A new one was made with its next checkout.',
  'a second subscription is ended, and is not paid back':
    'The same, but the provider refuses a refund for good: `refused` says why. Pay it back by hand.',
  'a payment notification is refused':
    'A notification is not the provider’s: `reason` says why. At most ten lines a minute; the metric counts all.',
  'events of the local payment provider wait':
    'They could not be told now. The next change there tells them, and so does the sweep of a start.',
  'the payment provider was swept':
    'What may have changed at the provider was read: `read` objects, of which `later` could not be applied yet.',
  'the sweep of the payment provider waits':
    'The provider or Postgres did not answer. The next try follows in a minute.',
  pack: 'The broker stored a pack of items.',

  // Shards
  flush: 'A group became a batch.',
  delivery:
    'An attempt ended: `warn` when it failed, `info` when it succeeded and `sampled` is true, else `debug`.',
  dead: 'A batch became the dead letter `dlqId`. `paused`: the buffer was disabled by it.',
  'buffer paused': 'The service disabled a buffer for `reason`; the last dead letter was `dlqId`.',
  retry:
    'Somebody retried the dead letter `dlqId`. `delivered` tells whether the destination took it, `error` why not.',
  discarded: 'Items of a buffer that was deleted while disabled were discarded.',
  dropped: 'Duplicates were dropped.',
  ownership: 'A shard changed its state on this node; `error` says why it ended.',
  problem: 'A shard met what it did not expect; `what` is one of the [problems](#problems).',
  'no socket is left for deliveries':
    'This process or machine has no file descriptor or memory for another connection; batches wait.',
  'no name server answers': 'Names of destinations cannot be looked up now; their batches wait.',
  'a name server answers again': 'They were looked up for ten seconds without such a failure.',
  'a log is nearly full': 'An inbox, a journal or an archive holds more than 80 % of its limit.',
  'a log has room again': 'It holds less than 70 % again.',

  'the logs never held an item, and are made for another number of shards':
    'PENSTOCK_SHARDS was changed before the first webhook.',

  // Processes
  starting: 'The process starts; `environment` has its variables, secrets as `set` or `unset`.',
  ready: 'The process takes traffic, or runs shards.',
  watching: 'The operator has begun to read Buffers and Secrets.',
  stopping: 'The process drains; `reason` is the signal or the error.',
  stopped: 'The drain is over; `errors` counts what could not be released.',
  'release failed': 'Something could not be released in the drain.',
  'the start failed': 'An unexpected error ended the start. Expected ones are one line of their own text.',
  'process started': '`npm start` started a further process; `opsUrl` is its ops port.',
  'it ended, and is not started again by itself': 'A member of `npm run cluster` ended; `again` starts it.',

  // Servers of the local instance
  'server started': 'An embedded server runs.',
  'embedded server died': 'An embedded server ended unasked.',
  'embedded server restarted': 'It runs again.',
  'installing the NATS server': 'The package of the NATS server is missing and is being installed.',
  'the port of the last run is taken, another one is used':
    'A server of the data folder had the port `taken`, and another program listens on it. Addresses that somebody noted have changed.',
  'stopped a server left behind': 'A server of an earlier run, whose parent was killed, was stopped.',
  'stopped a node left behind': 'A process of an earlier run, whose parent was killed, was stopped.',
  'the disk is full': 'The embedded NATS server could not write.',
  'the disk has room again: the server is restarted':
    'It is restarted, because it does not recover by itself.',

  // Postgres, broker, identity provider
  'broker connection': 'The connection to the broker broke or came back (`state`).',
  'the change feed waits': 'Postgres cannot be asked for changes; the node goes on with what it knows.',
  'a credit statement is repeated': 'Postgres did not answer a charge in time.',
  'credits of a node that is gone came back': 'Charges that a dead node had not settled were refunded.',
  'the ledgers of gone nodes wait': 'Such charges cannot be refunded, because Postgres does not answer.',
  'the last uses of keys wait': 'The times at which keys were used cannot be written now.',
  'the closing of days waits': 'Counters of past days cannot be summed up now; figures stay right.',
  'the removal of dead letters waits': 'Retention or quota could not be applied now.',
  'abandoned uploads removed':
    'Parts of large dead letters were removed whose owner did not finish within an hour.',
  'dead letters removed': 'Retention (`old`) or quota (`overQuota`) removed dead letters.',
  'audit records removed': 'Records of the audit were older than `PENSTOCK_AUDIT_DAYS`.',
  'the removal of audit records waits': 'Old records could not be removed now.',
  'ID tokens cannot be checked': 'The keys of the identity provider could not be fetched.',
  'this owner key was revoked and stays so': 'A key of `PENSTOCK_OWNER_KEYS` was revoked through the API.',

  // Operator
  leading: 'This replica leads and reconciles.',
  'leadership released': 'It gave up the lead in its drain.',
  'the lease could not be written': 'It could not take or renew the Lease.',
  'watch failed': 'A list or watch of the API server failed; `debug` when only its position was too old.',
  reconciled: 'A pass over one Buffer ended.',
  'reconcile failed': 'It failed, and is repeated after a pause.',
  'the admin API answers again':
    'It was away. The Buffers that it gave no answer (`resources`) are tried at once.',
  'the states of buffers are not known':
    'The admin API did not tell how the buffers of an API key stand. The operator compares them as usual.',
  buffer: 'A Buffer got an Event, with `reason` and `note`.',
  'buffer deleted': 'The buffer of a deleted resource was deleted at the service.',
  'an event could not be written': 'The API server did not take an Event.',
  'unusable resource': 'A resource cannot be read and is passed over.',
}

export const problemMeanings: Readonly<Record<'shards' | 'leases', Readonly<Record<string, string>>>> = {
  shards: {
    'a dead letter cannot be stored': 'Postgres did not take it. The batch waits, its group behind it.',
    'dead letters cannot be read': 'After a claim: open batches wait until Postgres answers.',
    'a tombstone stays': 'The mark of a removed dead letter could not be cleaned up. It does no harm.',
    'delivery counters': 'Postgres did not take delivery counts. They wait in the journal.',
    'delivery counters lag behind a journal that is nearly full':
      'The journal is cut all the same. Analytics lacks those batches; deliveries do not.',
    'the archive does not take a snapshot':
      'It is full, or the state is larger than 30 % of it. The journal is not cut meanwhile: raise `max_bytes` of the archive.',
    'the epoch cannot be raised in Postgres': 'After a claim: what needs Postgres waits until it answers.',
    'the logs were made anew': 'The streams are new, and what the former ones held is gone.',
    'the broker lost messages': 'The shard stopped, and waits for a repair.',
    'the inbox lacks messages': 'Stored messages are gone from the middle of the inbox.',
    'the logs cannot be checked': 'After a reconnect: the broker did not answer what it still has.',
    'the shard is quarantined': 'The shard failed. It is claimed again after a pause.',
    'the shard was fenced': 'Another node has claimed the shard.',
    'the shard stands still':
      'The journal takes no commits, or was not seen again for 5 s after a reconnect. Or the inbox may have lost its end, and is too full to tell.',
    'a hand-over failed': 'The next owner takes over as after a crash.',
    'the owner of a shard cannot be read': 'It is not claimed before the broker tells its owner.',
    'reading the inbox': 'The reader of the inbox failed and begins anew.',
    'a stored message cannot be read': 'A batch waits for its bytes.',
    housekeeping:
      'A step of cleaning up the logs failed. It is tried again each second, and the same failure is told every 30 s.',
    'the configuration of a buffer cannot be read': 'Its groups are held until Postgres answers.',
    'items of a buffer that does not exist are held':
      'Postgres never had the row of the buffer: it may be an older copy.',
    'deleted buffers cannot be reported': 'Rows of deleted buffers stay for now.',
    'a sealed batch cannot be rebuilt':
      'Its bytes are gone or came out different. Its items are sealed anew, under another key.',
    'items of a sealed batch are missing':
      'Its body cannot be built. What is left of it is sealed anew, under another key.',
    'sealed batches wait for a node of a newer version': 'Their groups wait behind them; all others go on.',
  },
  leases: {
    'the own lease could not be renewed': 'The broker did not take a renewal. The next one follows.',
    'the own lease is lost': 'Nothing is sealed or sent until it stands again.',
    'the own lease was not released: it expires by itself': 'The others wait for its end.',
    'the leases cannot be watched': 'The view of the other nodes is not fresh.',
    'the watch of the leases begins anew': 'It missed something and reads all leases again.',
    'a change of the leases was not taken in': 'A part of this node failed on a change.',
    'the bucket of the leases is not as it should be': 'Its settings differ and could not be changed.',
  },
}
