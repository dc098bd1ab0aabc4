/**
 * Rules of the protocol, each left out of the real core by another text in one of its modules. The checker must notice every one of
 * them. Rules that show in the simulation too seldom, or not at all, stand in `../unit-mutants.ts`: there a unit test must fail.
 *
 * docs/architecture/shard.md lists both ("Mutants of snapshots, room and losses"). Three rules of the design have none. All commits
 * go through one place, so `fence` leaves out that a keep is a conditional commit, too. A cut reads its snapshot back, so that the
 * snapshot is complete before is no rule of its own: see `cut-without-read-back` and `snapshot-unchecked`. A reconnect restarts the
 * waits of a cut's purges, but the snapshot behind which they cut waits as long.
 *
 * A horizon that is never committed would cost memory only: what is over is in the fold by its own record. So
 * `horizon-before-purge` purges what was read, committed or not.
 */
import type { Mutant } from '../mutate.ts'

export interface SimulationMutant extends Mutant {
  /** What is then found; other errors may be, too, but prove nothing of this rule. */
  readonly breaks: RegExp
  /**
   * Where it showed last, when that is rare; tried first. Any change of what the core asks for, and when, moves it: then all
   * are searched, which may take minutes, and the new one belongs here.
   */
  readonly seed?: number
  /** It shows only where the power fails. */
  readonly power?: boolean
}

export const MUTANTS: readonly SimulationMutant[] = [
  {
    name: 'fence',
    rule: 'a commit expects the last sequence that its owner knows',
    breaks: /behind the claim/,
    seed: 2,
    file: 'shard/journal/journal.ts',
    edits: [['        expectLastSeq: this.#lastSeq,\n', '']],
  },
  {
    name: 'one-in-flight',
    rule: 'one commit is in flight: the next sequence is not predicted',
    breaks: /behind the claim/,
    seed: 13,
    file: 'shard/journal/journal.ts',
    edits: [
      ['if (this.#scheduled || this.#flying) return', 'if (this.#scheduled) return'],
      ['if (this.#flying || this.#closed ||', 'if (this.#closed ||'],
      [
        'const { log, clock, onRefused } = this.#options',
        'const { log, clock, onRefused } = this.#options\n    const expected = this.#lastSeq++',
      ],
      ['expectLastSeq: this.#lastSeq,', 'expectLastSeq: expected,'],
      ['    this.#lastSeq = seq\n', ''],
    ],
  },
  {
    name: 'ready',
    rule: 'nothing follows from what a claim read before a commit proved it',
    breaks: /this must not be lost|Postgres knows another/,
    seed: 7,
    file: 'shard/claim/takeover.ts',
    edits: [
      ['    await journal.prove()\n    const { fault', '    const { fault'],
      ['continue\n    await journal.prove()\n', 'continue\n'],
    ],
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
    seed: 7,
    file: 'shard/housekeeping/inbox.ts',
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
    breaks: /^told duplicate/,
    file: 'shard/held/duplicates.ts',
    edits: [
      [
        'if (verdict) verdict.pending++',
        'if (verdict && originalItemId !== itemId) verdict.duplicates.push({ index, of: originalItemId })\n    verdict = null',
      ],
      ['    this.#whenNew(() => this.#settle(verdict))\n', '    this.#settle(verdict)\n'],
    ],
  },
  {
    name: 'forget-originals',
    rule: 'an item is no original any more once it is over',
    breaks: /its original was over/,
    seed: 3,
    file: 'shard/held/duplicates.ts',
    edits: [['    if (known === item) this.#originals.delete(item.messageId)\n    else if', '    if']],
  },
  {
    name: 'keep',
    rule: 'what the horizon leaves behind is carried into the journal',
    breaks: /^lost/,
    file: 'shard/housekeeping/inbox.ts',
    edits: [['live.lowestInboxSeq ?? replay.cursor,', 'replay.cursor,']],
  },
  {
    name: 'horizon-before-purge',
    rule: 'purges of the inbox follow a committed horizon, not what was read',
    breaks: /^lost|the inbox begins at/,
    seed: 3,
    file: 'shard/housekeeping/inbox.ts',
    edits: [
      ['Math.min(state.horizon, old?.cursor ?? 0)', 'Math.min(replay.cursor, old?.cursor ?? 0)'],
      [
        'const { state, clock, limits } = this.#options\n    const before',
        'const { replay, clock, limits } = this.#options\n    const before',
      ],
    ],
  },
  {
    name: 'seen-packs',
    rule: 'a pack that the broker stored again is refused',
    breaks: /^two keys/,
    file: 'shard/journal/seen-packs.ts',
    edits: [['return !known || seq <= this.#upTo', 'return true']],
  },
  {
    name: 'seen-before-horizon',
    rule: 'the packs that an owner has seen are written down before the horizon passes them',
    breaks: /^two keys/,
    seed: 157,
    file: 'shard/housekeeping/inbox.ts',
    edits: [['    if (seen) journal.write(seen)\n', '']],
  },
  {
    name: 'drops-before-seen',
    rule: 'the items of a refused pack are dropped before it counts as seen',
    breaks: /^two keys/,
    seed: 26,
    file: 'shard/held/duplicates.ts',
    edits: [
      [
        "    journal.write({ type: 'drop', position, itemId, originalItemId: itemId }",
        "    if (journal) return\n    journal.write({ type: 'drop', position, itemId, originalItemId: itemId }",
      ],
    ],
  },
  {
    name: 'void-records',
    rule: 'a keep that names what is over is void',
    breaks: /still buffered/,
    seed: 1,
    file: 'shard/journal/fold.ts',
    edits: [['    if (isOver(state, position)) return\n', '']],
  },
  {
    name: 'pg-fence',
    rule: 'the epoch of a claim is raised in Postgres',
    breaks: /^done and dead|although it is a dead letter/,
    seed: 28,
    file: 'shard/claim/epoch.ts',
    edits: [['while (!(await deadLetters.replaceEpoch(fence, claim)))', 'while (!claim)']],
  },
  {
    name: 'known-claim-proven',
    rule: 'a later claim in Postgres is no loss before a commit behind it',
    breaks: /the journal lost messages/,
    seed: 59,
    file: 'shard/claim/epoch.ts',
    edits: [
      ['await proven(journal, () => compare(claim,', 'await (() => compare(claim,'],
      ['claimMissingIn(options.snapshot, claim)))', 'claimMissingIn(options.snapshot, claim)))()'],
    ],
  },
  {
    name: 'counted-name',
    rule: 'Postgres knows the last counted commit by its own bytes',
    breaks: /^Postgres knows another counted commit/,
    file: 'shard/batches/projector.ts',
    edits: [['this.#reached = commitName(seq, data)', 'this.#reached = { ...this.#reached, seq }']],
  },
  {
    name: 'tombstone',
    rule: 'a tombstone stays until `dead` is committed',
    breaks: /^second row|although it is a dead letter/,
    seed: 85,
    file: 'shard/batches/settlement.ts',
    edits: [
      [
        "const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')",
        "if (type === 'dead') this.#forgetTombstone({ groupId: sealed.group.id, version: sealed.batch.version })\n    const fact = this.#factOf(sealed, type === 'done' ? 'delivered' : 'dead')",
      ],
    ],
  },
  {
    name: 'known-dead',
    rule: 'a batch that Postgres has as a dead letter is not sent again',
    breaks: /^done and dead|although it is a dead letter/,
    seed: 29,
    file: 'shard/claim/restoration.ts',
    edits: [['if (known.has(batchKey(batch)))', 'if (known.has(batchKey(batch)) && !batch)']],
  },
  {
    name: 'read-once',
    rule: 'what the inbox hands over twice is taken once',
    breaks: /^lost|was dropped for itself/,
    seed: 4,
    file: 'shard/claim/intake.ts',
    edits: [['      if (message.seq < replay.cursor) continue\n', '']],
  },
  {
    name: 'own-last',
    rule: 'after a refused sequence the own commit at the end of the journal is success',
    breaks: /^fenced without another claim/,
    seed: 8,
    file: 'shard/journal/journal.ts',
    edits: [['    if (last?.msgId === msgId) return last.seq\n', '']],
  },
  {
    name: 'originals-in-batches',
    rule: 'an item of an open batch that was taken over keeps its id taken',
    breaks: /^missed duplicate/,
    seed: 5,
    file: 'shard/claim/intake.ts',
    edits: [['    duplicates.add(item)\n', '    if (!batch) duplicates.add(item)\n']],
  },
  {
    name: 'kept-originals',
    rule: 'an item that a keep carries keeps its id taken',
    breaks: /^missed duplicate/,
    seed: 28,
    file: 'shard/claim/intake.ts',
    edits: [['    duplicates.add(item)\n', "    if (message.source === 'inbox') duplicates.add(item)\n"]],
  },
  {
    name: 'sealed-originals',
    rule: 'an id is taken until its item is over, not until it is sealed',
    breaks: /^missed duplicate/,
    seed: 7,
    file: 'shard/batches/batches.ts',
    edits: [
      [
        '        this.#sealed.set(batch, sealed)\n',
        '        this.#sealed.set(batch, sealed)\n        for (const item of batch.items) (this.#options as any).duplicates.remove(item)\n',
      ],
    ],
  },
  {
    name: 'same-group',
    rule: 'ids are taken in one group only',
    breaks: /which is no older one/,
    file: 'shard/held/duplicates.ts',
    edits: [['return found?.group.id === groupId ? found : undefined', 'return found']],
  },
  {
    name: 'verdict-of-new',
    rule: 'a pack of new items alone gets its verdict, too',
    breaks: /^no verdict/,
    file: 'shard/held/duplicates.ts',
    edits: [['    else broker.tell(verdict.replySubject, bytes)\n', '']],
  },
  {
    name: 'answers',
    rule: 'whoever asks for the fate of an item is answered',
    breaks: /were not answered/,
    seed: 12,
    file: 'shard/held/duplicates.ts',
    edits: [['    if (!ask || !reply) return\n', '    if (ask || !reply) return\n']],
  },
  {
    name: 'attempt-before-record',
    rule: 'an attempt after the first begins only once its record is committed',
    breaks: /again, without a fault|is told as/,
    seed: 15,
    file: 'shard/batches/batches.ts',
    edits: [
      [
        "    this.#options.journal.write(record, () =>\n      this.step(group, { kind: 'attempt-recorded', at: this.#options.clock.now(), batch }),\n    )",
        "    this.#options.journal.write(record)\n    queueMicrotask(() => this.step(group, { kind: 'attempt-recorded', at: this.#options.clock.now(), batch }))",
      ],
    ],
  },
  {
    name: 'restored-attempt',
    rule: 'a batch that was taken over goes on with its number of attempts',
    breaks: /is told as|again, without a fault/,
    file: 'shard/batches/batches.ts',
    edits: [['version, attempt, nextAttemptAt, segment', 'version, attempt: 1, nextAttemptAt, segment']],
  },
  {
    name: 'restored-order',
    rule: 'batches that were taken over go on in the order of their versions',
    breaks: /before an older batch of its group/,
    seed: 26,
    file: 'group/machine.ts',
    edits: [['batches.splice(younger < 0 ? batches.length : younger, 0, batch)', 'batches.unshift(batch)']],
  },
  {
    name: 'restored-first',
    rule: 'a group stands still until all its batches are restored, whatever its buffer is told meanwhile',
    breaks: /^order|before an older batch of its group/,
    seed: 55,
    file: 'shard/batches/batches.ts',
    edits: [
      ['replay.replaying || group.restoring > 0 || groups.paused', 'replay.replaying || groups.paused'],
    ],
  },
  {
    name: 'in-flight',
    rule: 'what the last owner left in flight is not repeated before its result or its deadline',
    breaks: /while the last owner had it in flight/,
    file: 'shard/batches/handover.ts',
    edits: [
      ['return this.#deadlines.has(batchKey(name))', 'return this.#deadlines.has(batchKey(name)) && !name'],
    ],
  },
  {
    name: 'dead-before-release',
    rule: 'whoever lets go waits for dead letters on their way',
    breaks: /^the release .* leaves out/,
    seed: 65,
    file: 'shard/release.ts',
    edits: [
      ['    await this.#until(() => batches.deadLettering === 0, soon)\n', ''],
      ['batches.deadLettering > 0 || ', ''],
    ],
  },
  {
    name: 'disabled',
    rule: 'a disabled buffer holds what it has',
    breaks: /while its buffer was disabled/,
    seed: 3,
    file: 'shard/held/buffer-state.ts',
    edits: [["deleted ? 'discarding' : 'held'", "deleted ? 'discarding' : 'active'"]],
  },
  {
    name: 'withdrawn',
    rule: 'an attempt that waits for its turn is withdrawn when its buffer is disabled',
    breaks: /while its buffer was disabled/,
    seed: 68,
    file: 'shard/batches/attempts.ts',
    edits: [[' && isActive(group)', '']],
  },
  {
    name: 'old-destination',
    rule: 'an attempt reads its buffer when its turn comes, not when it begins to wait',
    breaks: /with what its buffer was before/,
    seed: 12,
    file: 'shard/batches/delivery-scheduler.ts',
    edits: [
      [
        'const record = () => buffer.record!',
        'const before = buffer.record!\n      const record = () => before',
      ],
    ],
  },
  {
    name: 'release-waiting',
    rule: 'a release names what runs, and nothing that waits for its turn',
    breaks: /which does not run/,
    seed: 3,
    file: 'shard/batches/attempts.ts',
    edits: [
      [
        'const result = await scheduler.attempt(sealed, mayBegin, () => this.#running.add(sealed))',
        'this.#running.add(sealed)\n      const result = await scheduler.attempt(sealed, mayBegin)',
      ],
    ],
  },
  {
    name: 'older-record',
    rule: 'a shard takes what its cache says, also when Postgres came back as an older copy',
    breaks: /while its buffer was disabled|with what its buffer was before/,
    seed: 25,
    file: 'shard/held/buffer-state.ts',
    edits: [
      [
        '    this.record = record\n',
        '    if (this.record && record.version < this.record.version) return false\n    this.record = record\n',
      ],
    ],
  },
  {
    name: 'set-back',
    rule: 'a group whose clock is set back counts from the present',
    breaks: /still buffered/,
    seed: 103,
    file: 'group/machine.ts',
    edits: [['  state.lastSealAt = past(state.lastSealAt)\n', '']],
  },
  {
    name: 'late-wakes',
    rule: 'groups arm their wakes anew when the clock was set back',
    breaks: /still buffered/,
    seed: 147,
    file: 'shard/batches/batches.ts',
    edits: [['if (this.#wakes.mayBeLate())', 'if (!this.#wakes)']],
  },
  {
    name: 'last-flush',
    rule: 'a group that leaves within the delay between flushes is not flushed too soon when it comes back',
    breaks: /after its last flush/,
    seed: 3,
    file: 'shard/held/groups.ts',
    edits: [['createGroup(policy, now, flushedAt)', 'createGroup(policy, now)']],
  },
  {
    name: 'deleted-enabled',
    rule: 'a buffer that was deleted while enabled delivers what it has',
    breaks: /was discarded$/,
    file: 'shard/held/buffer-state.ts',
    edits: [
      [
        "buffer.enabled ? 'active' : deleted ? 'discarding' : 'held'",
        "deleted ? 'discarding' : buffer.enabled ? 'active' : 'held'",
      ],
    ],
  },
  {
    name: 'lease',
    rule: 'no attempt begins while the node is not certain of its lease, noticed or not',
    breaks: /not certain of its lease/,
    seed: 38,
    file: 'shard/assembly.ts',
    edits: [['!held.groups.paused && (owner.holds?.() ?? true)', '!held.groups.paused']],
  },
  {
    name: 'proof-after-pause',
    rule: 'a pause ends with a commit: another owner may have sent what is due',
    breaks: /without a proof/,
    seed: 205,
    file: 'shard/pausing.ts',
    edits: [['        await journal.prove()\n', '']],
  },
  {
    name: 'whole-commits',
    rule: 'counters are written up to the end of a commit, never between two facts of one',
    breaks: /facts were counted/,
    seed: 1,
    file: 'shard/batches/projector.ts',
    edits: [
      [
        '    while (end < this.#facts.length && this.#facts[end]!.commit.seq === this.#facts[end - 1]!.commit.seq)\n      end++\n',
        '',
      ],
    ],
  },
  {
    name: 'fact',
    rule: 'a fact counts the attempts of its batch',
    breaks: /its fact has/,
    file: 'shard/batches/settlement.ts',
    edits: [['attempts: Math.max(1, batch.attempt)', 'attempts: 1']],
  },
  {
    name: 'fold-ends-early',
    rule: 'a fold ends at the claim, and nowhere before it',
    breaks: /^the fold of the claim/,
    seed: 2,
    file: 'shard/claim/journal-reading.ts',
    edits: [['    if (this.#next <= to)\n', '    if (to < 0)\n']],
  },
  {
    name: 'loss-from-stale-answer',
    rule: 'the end of an inbox is where a probe is stored: a server without its peers answers with what it had',
    breaks: /the broker lost messages/,
    seed: 401,
    file: 'shard/claim/inbox-check.ts',
    edits: [['isLong ? null : await probeInbox(check)', 'isLong ? null : head.lastSeq + 1']],
  },
  {
    name: 'loss-before-proof',
    rule: 'a loss of the inbox is told behind a commit: a stale owner sees the purges of its successor',
    breaks: /the broker lost messages/,
    seed: 441,
    file: 'shard/claim/inbox-check.ts',
    edits: [['      await journal.prove()\n', '']],
  },
  {
    name: 'journal-loss-before-claim',
    rule: 'an owner that misses its last commit claims again before it says that it is lost',
    breaks: /the broker lost messages/,
    seed: 202,
    file: 'shard/journal/journal-tail.ts',
    edits: [['  if (claim <= lastSeq)\n', '  if (claim > 0)\n']],
  },
  {
    name: 'missing-by-two-answers',
    rule: 'a message is missing only where a server has a later one',
    breaks: /MissingMessageError|cannot be rebuilt/,
    seed: 404,
    file: 'shard/message-reader.ts',
    edits: [['await messageAt(log, seq)', 'await log.get(seq)']],
  },
  {
    name: 'nothing-is-missing',
    rule: 'a server that has nothing from a message on was behind',
    breaks: /MissingMessageError|cannot be rebuilt/,
    seed: 113,
    file: 'shard/message-at.ts',
    edits: [['  throw new Error(', '  if (seq < 0) throw new Error(']],
  },
  {
    name: 'cut-above-s',
    rule: 'the journal is cut only below the commit that a snapshot names',
    breaks: /misses commits|^the fold of the claim/,
    seed: 8,
    file: 'shard/housekeeping/cut.ts',
    edits: [
      [
        'Math.min(behind, state.kept.oldestCommit)',
        'Math.min(this.#options.journal.lastSeq, state.kept.oldestCommit)',
      ],
      ['this.#purges.purge(this.#confirmed?.name.seq ?? 0)', 'this.#purges.purge()'],
    ],
  },
  {
    name: 'cut-above-kept',
    rule: 'the journal is cut only below the oldest commit that holds a kept item',
    breaks: /kept items and is gone/,
    seed: 1,
    file: 'shard/housekeeping/cut.ts',
    edits: [['Math.min(behind, state.kept.oldestCommit)', 'behind']],
  },
  {
    name: 'snapshot-not-frozen',
    rule: 'a snapshot is of one state: what is committed while it is written does not change it',
    breaks: /^the fold of the claim/,
    seed: 8,
    file: 'shard/journal/snapshot.ts',
    edits: [
      ['finished: state.finished.copy(),', 'finished: state.finished,'],
      ['kept: state.kept.copy(),', 'kept: state.kept,'],
    ],
  },
  {
    name: 'snapshot-without-identity',
    rule: 'a snapshot names its commit by its bytes, too',
    breaks: /^the fold of the claim/,
    power: true,
    seed: 1916,
    file: 'shard/claim/journal-reading.ts',
    edits: [['!isSameCommit(name, commitName(seq, data))', '!isSameCommit(name, name)']],
  },
  {
    name: 'snapshot-of-unstored',
    rule: 'a snapshot names a commit that the broker has stored',
    breaks: /the journal up to \d+ does not have it/,
    seed: 9,
    file: 'shard/journal/journal.ts',
    edits: [
      [
        '  #lastData: Buffer | null = null\n',
        '  #lastData: Buffer | null = null\n  #sent: CommitName | null = null\n',
      ],
      [
        '    this.#room.sent()\n',
        '    this.#room.sent()\n    this.#sent = commitName(this.#lastSeq + 1, data)\n',
      ],
      ['return this.#lastData ? commitName(this.#lastSeq, this.#lastData)', 'return this.#sent ? this.#sent'],
    ],
  },
  {
    name: 'snapshot-waits',
    rule: 'a snapshot waits for no commit: no step of housekeeping waits for another',
    breaks: /still buffered/,
    seed: 5,
    file: 'shard/housekeeping/housekeeping.ts',
    edits: [
      [
        'this.#steps = works.map(',
        'const all = async () => {\n      for (const work of works) await work()\n    }\n    this.#steps = [all].map(',
      ],
    ],
  },
  {
    name: 'older-removed-at-once',
    rule: 'older snapshots stay until the new one is complete',
    breaks: /misses commits/,
    seed: 46,
    file: 'shard/archive/snapshot-archive.ts',
    edits: [['if (!hasEnd && !isSameCommit(other, name))', 'if (!isSameCommit(other, name))']],
  },
  {
    name: 'commits-fill-journal',
    rule: 'commits leave room for what lets the journal be cut',
    breaks: /no room/,
    seed: 10,
    file: 'shard/journal/room.ts',
    edits: [['commits: 0.8', 'commits: 1']],
  },
  {
    name: 'carrying-waits',
    rule: 'what carries kept items forward passes what waits for room',
    breaks: /still buffered/,
    seed: 80,
    file: 'shard/journal/journal.ts',
    edits: [["{ ...queuedOf(record, committed), passage: 'passes' }", 'queuedOf(record, committed)']],
  },
  {
    name: 'newest-carried-first',
    rule: 'the oldest kept items are carried forward first',
    breaks: /still buffered/,
    seed: 10,
    file: 'shard/housekeeping/carrying.ts',
    edits: [
      [
        'of this.#options.state.kept.commits()) {\n      if (commit >= limit) break',
        'of [...this.#options.state.kept.commits()].reverse()) {\n      if (commit >= limit) continue',
      ],
    ],
  },
  {
    name: 'replay-end',
    rule: 'a replay ends at the end of an inbox that lost more',
    breaks: /something is still buffered/,
    power: true,
    seed: 1096,
    file: 'shard/log-watch.ts',
    edits: [['    if (!seen.replay.replaying) return\n', '    if (seen) return\n']],
  },
]
