/**
 * The rules of the protocol, each left out of the real core by another text in one of its modules. The checker must
 * notice every one of them.
 *
 * Two rules of the core have none, for nothing reaches them alone: a commit seals a group once at most, but the group
 * machine seals one batch at a time anyway; and a drop of what is sealed is void, but items are dropped when they are
 * read first, before anything can seal them. A horizon that is never committed would cost memory only: what is over is
 * in the fold by its own record. So `horizon-before-purge` purges what was read, committed or not.
 */
export interface Mutant {
  readonly name: string
  /** What is left out. */
  readonly rule: string
  /** What is then found; other errors may be, too, but prove nothing of this rule. */
  readonly breaks: RegExp
  /**
   * Where it showed last, when that is rare; tried first. Any change of what the core asks for, and when, moves it: then all
   * are searched, which may take minutes, and the new one belongs here.
   */
  readonly seed?: number
  /** Below `internal/`. */
  readonly file: string
  /** Texts that stand there exactly once, and what stands there instead. */
  readonly edits: readonly (readonly [from: string, to: string])[]
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'fence',
    rule: 'a commit expects the last sequence that its owner knows',
    breaks: /behind the claim/,
    file: 'shard/journal/journal.ts',
    edits: [['        expectLastSeq: this.#lastSeq,\n', '']],
  },
  {
    name: 'one-in-flight',
    rule: 'one commit is in flight: the next sequence is not predicted',
    breaks: /behind the claim/,
    file: 'shard/journal/journal.ts',
    edits: [
      ['if (this.#scheduled || this.#flying) return', 'if (this.#scheduled) return'],
      ['if (this.#flying || this.#closed ||', 'if (this.#closed ||'],
      [
        'const { log, clock } = this.#options',
        'const { log, clock } = this.#options\n    const expected = this.#lastSeq++',
      ],
      ['expectLastSeq: this.#lastSeq,', 'expectLastSeq: expected,'],
      ['    this.#lastSeq = seq\n', ''],
    ],
  },
  {
    name: 'ready',
    rule: 'nothing follows from what a claim read before a commit proved it',
    breaks: /is gone|beginning of the journal/,
    file: 'shard/claimed-logs.ts',
    edits: [['  await journal.prove()\n  checkJournalHead', '  checkJournalHead']],
  },
  {
    name: 'replay-first',
    rule: 'nothing is sealed before the replay has passed what the inbox held at the claim',
    breaks: /before it is sealed/,
    file: 'shard/claim/intake.ts',
    edits: [['groups.open(token, view.bufferUid, replaying)', 'groups.open(token, view.bufferUid, false)']],
  },
  {
    name: 'done-before-finish',
    rule: 'the horizon passes an item only once the record that ends it is committed, not when it is sealed',
    breaks: /^lost/,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [
      [
        'live.lowestInboxSeq ?? replay.cursor,',
        '[...live.inInbox()].find((item) => !this.#options.state.sealed.has(item.seq, item.index))?.seq ?? replay.cursor,',
      ],
    ],
  },
  {
    name: 'drop-before-telling',
    rule: 'a drop is committed before anybody is told',
    breaks: /told duplicate but sent/,
    seed: 50,
    file: 'shard/held/duplicates.ts',
    edits: [
      [
        'if (verdict) verdict.pending++',
        'if (verdict && originalItemId !== itemId) verdict.duplicates.push({ index, of: originalItemId })\n    verdict = null',
      ],
    ],
  },
  {
    name: 'forget-originals',
    rule: 'an item is no original any more once it is over',
    breaks: /its original was over/,
    file: 'shard/held/duplicates.ts',
    edits: [['    if (known === item) this.#originals.delete(item.messageId)\n    else if', '    if']],
  },
  {
    name: 'keep',
    rule: 'what the horizon leaves behind is carried into the journal',
    breaks: /^lost/,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [['live.lowestInboxSeq ?? replay.cursor,', 'replay.cursor,']],
  },
  {
    name: 'horizon-before-purge',
    rule: 'purges of the inbox follow a committed horizon, not what was read',
    breaks: /^lost|the inbox begins at/,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [
      ['Math.min(state.horizon, old?.cursor ?? 0)', 'Math.min(replay.cursor, old?.cursor ?? 0)'],
      ['const { state, clock, limits, inboxLog } =', 'const { replay, clock, limits, inboxLog } ='],
    ],
  },
  {
    name: 'seen-packs',
    rule: 'a pack that the broker stored again is refused',
    breaks: /^two keys/,
    file: 'shard/held/pack-memory.ts',
    edits: [['return !known || seq <= this.#seen.upTo', 'return true']],
  },
  {
    name: 'seen-before-horizon',
    rule: 'the packs that an owner has seen are written down before the horizon passes them',
    breaks: /^two keys/,
    seed: 207,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [['    if (seen) journal.write(seen)\n', '']],
  },
  {
    name: 'drops-before-seen',
    rule: 'the items of a refused pack are dropped before it counts as seen',
    breaks: /^two keys/,
    file: 'shard/held/duplicates.ts',
    edits: [
      [
        "this.#journal.write({ type: 'drop', position, itemId, originalItemId: itemId }",
        "if (this.#live) return\n    this.#journal.write({ type: 'drop', position, itemId, originalItemId: itemId }",
      ],
    ],
  },
  {
    name: 'void-records',
    rule: 'a keep that names what is over is void',
    breaks: /still buffered/,
    file: 'shard/journal/fold.ts',
    edits: [['    if (isOver(state, position)) return\n', '']],
  },
  {
    name: 'pg-fence',
    rule: 'the epoch of a claim is raised in Postgres',
    breaks: /^done and dead/,
    file: 'shard/claim/epoch.ts',
    edits: [['  await deadLetters.raiseEpoch(fence)\n', '']],
  },
  {
    name: 'tombstone',
    rule: 'a tombstone stays until `dead` is committed',
    breaks: /^second row/,
    seed: 1035,
    file: 'shard/batches/settlement.ts',
    edits: [
      [
        "const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')",
        "if (type === 'dead') this.#forgetTombstone(group, sealed.batch.version)\n    const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')",
      ],
    ],
  },
  {
    name: 'known-dead',
    rule: 'a batch that Postgres has as a dead letter is not sent again',
    breaks: /^done and dead/,
    file: 'shard/claim/restoration.ts',
    edits: [['if (known.has(batchKey(batch)))', 'if (known.has(batchKey(batch)) && !batch)']],
  },
  {
    name: 'proof-of-loss',
    rule: 'a missing message means nothing before a commit: a stale owner sees the purges of its successor',
    breaks: /cannot be rebuilt/,
    file: 'shard/batches/batches.ts',
    edits: [['    await this.#options.journal.prove()\n', '']],
  },
  {
    name: 'snapshot-since',
    rule: 'what was committed while a snapshot was written is applied on top of it',
    breaks: /^two keys|its original was over/,
    file: 'shard/journal/fold.ts',
    edits: [['    for (const stored of since) applyCommit(this.state, stored)\n', '']],
  },
  {
    name: 'kept-commits',
    rule: 'the journal is purged only behind the oldest commit that holds a kept item',
    breaks: /kept items and is gone/,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [['    for (const { commit } of state.kept.values()) target = Math.min(target, commit)\n', '']],
  },
  {
    name: 'counted-commits',
    rule: 'the journal is purged only behind what the delivery counters have',
    breaks: /facts were counted/,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [['else target = Math.min(target, counted)', 'else target = Math.min(target, target)']],
  },
  {
    name: 'read-once',
    rule: 'what the inbox hands over twice is taken once',
    breaks: /^lost/,
    file: 'shard/claim/intake.ts',
    edits: [['      if (message.seq < replay.cursor) continue\n', '']],
  },
  {
    name: 'own-last',
    rule: 'after a refused sequence the own commit at the end of the journal is success',
    breaks: /^fenced without another claim/,
    file: 'shard/journal/journal.ts',
    edits: [['    if (last?.msgId === msgId) return last.seq\n', '']],
  },
]
