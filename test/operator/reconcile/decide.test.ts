import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decide } from '../../../operator/reconcile/decide.ts'
import type { Decision } from '../../../operator/reconcile/decision.ts'
import { ORPHAN_AFTER_MS } from '../../../operator/reconcile/deletion.ts'
import type { DesiredBuffer } from '../../../operator/reconcile/desired-buffer.ts'
import type { Observed } from '../../../operator/reconcile/observed.ts'
import { AdminError } from '../../../operator/reconcile/ports.ts'
import {
  type BufferStatus,
  PAUSE_ANNOTATION,
  RESUME_ANNOTATION,
  UNMANAGED_ANNOTATION,
} from '../../../operator/resource.ts'
import {
  CLAIMED,
  JUST_NOW,
  KEY,
  observed,
  resource,
  SECRETS,
  SIGNING,
  SYNCED,
  secret,
  stored,
} from './fixtures.ts'

const OTHER_KEY = `svk_${'1b'.repeat(24)}`
const deleted = { deletionTimestamp: JUST_NOW }
const held = { ...resource().metadata, ...deleted }
const resumed = (value: string) => ({ annotations: { [RESUME_ANNOTATION]: value } })
const withoutKey = [SECRETS[1]!]
const paused = { enabled: false, consecutiveDlqCount: 3 }
const disabled = { enabled: false, consecutiveDlqCount: 1 }
const orders = stored()
const annotated = { annotations: { [PAUSE_ANNOTATION]: 'true' } }
const PAUSED: BufferStatus = {
  ...SYNCED,
  enabled: false,
  conditions: [
    ...SYNCED.conditions!,
    { ...SYNCED.conditions![0]!, type: 'Paused', reason: 'PausedByAnnotation' },
  ],
}

/** One row a rule and way through it: what was observed, and the least that the decision says. */
const TABLE: readonly [title: string, given: Observed, decision: Partial<Decision>][] = [
  [
    'is held before anything is asked of the service',
    observed({ metadata: { finalizers: ['a/b'] } }),
    { act: 'finalize' },
  ],
  ['that nobody claimed is looked for', observed(), { act: 'look', key: KEY }],
  ['that was not found is claimed', observed({ remote: 'absent' }), { act: 'claim', adopt: false }],
  [
    'that was claimed is created without another look',
    observed({ status: CLAIMED, claimed: true }),
    { act: 'create', again: false },
  ],
  [
    'that was claimed by who knows what became of it is looked for',
    observed({ status: CLAIMED }),
    { act: 'look', key: KEY },
  ],
  ['that was claimed before and made is in order', observed({ status: CLAIMED, remote: orders }), ready()],
  [
    'that was claimed before and not made is claimed anew',
    observed({ status: CLAIMED, remote: 'absent' }),
    { act: 'claim', adopt: false },
  ],
  [
    'whose creation met a buffer is looked for',
    observed({ status: CLAIMED, claimed: true, taken: true }),
    { act: 'look' },
  ],
  [
    'whose creation met a buffer is not that buffer`s',
    observed({ status: CLAIMED, claimed: true, taken: true, remote: orders }),
    stalled('Conflict', true),
  ],
  [
    'whose creation met a buffer takes it over where that is wanted',
    observed({
      status: CLAIMED,
      claimed: true,
      taken: true,
      remote: orders,
      spec: { adoptionPolicy: 'Adopt' },
    }),
    { act: 'claim', adopt: true },
  ],
  [
    'that is taken where its key does not reach is told so, and lets go of it',
    observed({ status: CLAIMED, claimed: true, taken: true, remote: 'absent' }),
    stalled('Conflict', true),
  ],
  [
    'that was made and is now where its key does not reach keeps it',
    observed({ status: SYNCED, taken: true, remote: 'absent' }),
    stalled('Conflict'),
  ],
  ['that exists without a claim is left alone', observed({ remote: orders }), stalled('Conflict', true)],
  [
    'that exists without a claim is adopted where that is wanted',
    observed({ spec: { adoptionPolicy: 'Adopt' }, remote: orders }),
    { act: 'claim', adopt: true },
  ],
  [
    'that was adopted is looked for, not created',
    observed({ status: { bufferId: 'orders' } }),
    { act: 'look' },
  ],
  [
    'of another project is not touched, even where adoption is wanted',
    observed({ spec: { adoptionPolicy: 'Adopt' }, remote: { ...orders, projectId: 'other' } }),
    stalled('Conflict', true),
  ],
  [
    'that was claimed but exists in another project is let go',
    observed({ status: CLAIMED, taken: true, remote: { ...orders, projectId: 'other' } }),
    stalled('Conflict', true),
  ],
  [
    'that another resource has is not touched',
    observed({ rival: { name: 'shop/first', isOwner: true } }),
    stalled('Conflict', true),
  ],
  [
    'that another resource tries to get first may come of its own intent still',
    observed({ status: CLAIMED, rival: { name: 'shop/first', isOwner: false } }),
    stalled('Conflict'),
  ],
  [
    'that another resource tries to get first is not its own when its creation was refused',
    observed({ status: CLAIMED, claimed: true, rival: { name: 'shop/first', isOwner: false } }),
    stalled('Conflict', true),
  ],
  ['in order rests', observed({ status: SYNCED, restMs: 500 }), { act: 'rest', forMs: 500 }],
  ['in order is looked at when its rest is over', observed({ status: SYNCED }), { act: 'look', key: KEY }],
  ['in order is told as ready', observed({ status: SYNCED, remote: orders }), ready()],
  [
    'that was deleted at the service is created again',
    observed({ status: SYNCED, remote: 'absent' }),
    { act: 'create', again: true },
  ],
  [
    'that was edited at the service is set back',
    observed({ status: SYNCED, remote: { ...orders, name: 'edited' } }),
    change('Corrected', { name: 'orders' }),
  ],
  [
    'whose description changed is updated',
    observed({
      status: SYNCED,
      metadata: { generation: 2 },
      spec: { displayName: 'Orders' },
      remote: orders,
    }),
    change('Updated', { name: 'Orders' }),
  ],
  [
    'whose Secret changed is updated',
    observed({
      status: SYNCED,
      remote: orders,
      secrets: [SECRETS[0]!, secret('signing', { secret: 'a new one' }, '12')],
    }),
    change('Updated', {
      delivery: {
        url: 'https://shop.example/hook',
        method: 'POST',
        idempotencyHeader: 'x-idempotency-key',
        signing: { type: 'hmac-sha256', header: 'x-svc-signature', secret: 'a new one' },
      },
    }),
  ],
  [
    'that the service just changed is not changed again in the same pass',
    observed({ status: SYNCED, changed: true, remote: { ...orders, name: 'as the service made it' } }),
    ready(),
  ],

  // Enabled, disabled, paused.
  [
    'that the service paused stays so',
    observed({ status: SYNCED, remote: { ...orders, ...paused } }),
    isPaused(),
  ],
  [
    'that the service paused stays so, also where it shall be enabled',
    observed({ status: SYNCED, spec: { enabled: true }, remote: { ...orders, ...paused } }),
    isPaused(),
  ],
  [
    'that was disabled at the service is enabled where that is wanted',
    observed({ status: SYNCED, spec: { enabled: true }, remote: { ...orders, ...disabled } }),
    change('Corrected', { enabled: true }),
  ],
  [
    'that was disabled at the service stays so where it is nobody else`s business',
    observed({ status: SYNCED, remote: { ...orders, ...disabled } }),
    isPaused(),
  ],
  [
    'that shall be disabled is',
    observed({ status: SYNCED, metadata: { generation: 2 }, spec: { enabled: false }, remote: orders }),
    change('Updated', { enabled: false }),
  ],
  [
    'that shall be disabled and is counts as ready',
    observed({ status: SYNCED, spec: { enabled: false }, remote: { ...orders, ...paused } }),
    ready(),
  ],
  [
    'that the service paused goes on when its description changes',
    observed({
      status: SYNCED,
      metadata: { generation: 2 },
      spec: { displayName: 'Orders' },
      remote: { ...orders, ...paused },
    }),
    change('Resumed', { enabled: true, name: 'Orders' }),
  ],
  [
    'that somebody disabled stays so when its description changes, where it is nobody else`s business',
    observed({
      status: SYNCED,
      metadata: { generation: 2 },
      spec: { displayName: 'Orders' },
      remote: { ...orders, ...disabled },
    }),
    change('Updated', { name: 'Orders' }),
  ],
  [
    'that the service paused goes on at a new value of the annotation',
    observed({
      status: { ...SYNCED, lastHandledResume: 'one' },
      metadata: resumed('two'),
      remote: { ...orders, ...paused },
    }),
    change('Resumed', { enabled: true }),
  ],
  [
    'that the service paused again stays so at a value that was handled',
    observed({
      status: { ...SYNCED, lastHandledResume: 'one' },
      metadata: resumed('one'),
      remote: { ...orders, ...paused },
    }),
    isPaused(),
  ],
  [
    'that shall be disabled is not resumed by the annotation',
    observed({
      status: SYNCED,
      metadata: resumed('two'),
      spec: { enabled: false },
      remote: { ...orders, ...paused },
    }),
    ready(),
  ],

  // Paused by its annotation.
  [
    'with the pause annotation is disabled',
    observed({ status: SYNCED, metadata: annotated, remote: orders }),
    change('Paused', { enabled: false }),
  ],
  [
    'with the pause annotation is disabled, also where it shall be enabled',
    observed({ status: SYNCED, metadata: annotated, spec: { enabled: true }, remote: orders }),
    change('Paused', { enabled: false }),
  ],
  [
    'with the pause annotation is ready once it is disabled',
    observed({ status: SYNCED, metadata: annotated, remote: { ...orders, ...disabled } }),
    ready(),
  ],
  [
    'without the pause annotation goes on',
    observed({ status: PAUSED, remote: { ...orders, ...disabled } }),
    change('Resumed', { enabled: true }),
  ],
  [
    'without the pause annotation stays disabled where its spec says so',
    observed({ status: PAUSED, spec: { enabled: false }, remote: { ...orders, ...disabled } }),
    ready(),
  ],
  [
    'without the pause annotation stays so when the service has paused it',
    observed({ status: PAUSED, remote: { ...orders, ...paused } }),
    isPaused(),
  ],

  // Secrets.
  ['without its API key waits', observed({ secrets: withoutKey }), stalled('SecretNotFound')],
  [
    'in order whose API key vanished is told so, resting or not',
    observed({ status: SYNCED, secrets: withoutKey, lastKeys: [KEY], restMs: 500 }),
    stalled('SecretNotFound'),
  ],
  [
    'whose API key is none is told so',
    observed({ secrets: [secret('penstock', { apiKey: 'hunter2' }), SECRETS[1]!] }),
    stalled('InvalidCredentials'),
  ],
  ['without another Secret waits', observed({ secrets: [SECRETS[0]!] }), stalled('SecretNotFound')],
  [
    'whose Secret lacks the key waits',
    observed({ secrets: [SECRETS[0]!, secret('signing', { other: 'x' })] }),
    stalled('SecretNotFound'),
  ],
  [
    'with an empty Secret is told so',
    observed({ secrets: [SECRETS[0]!, secret('signing', { secret: '' })] }),
    stalled('SecretInvalid'),
  ],
  [
    'that no service would take is told so without asking one',
    observed({ spec: { delivery: { ...resource().spec.delivery, headers: { 'content-type': 'x' } } } }),
    stalled('InvalidSpec'),
  ],

  // Deleted.
  [
    'deleted and held by others only is over',
    observed({ metadata: { ...held, finalizers: ['a/b'] } }),
    { act: 'rest' },
  ],
  [
    'deleted, let go and held by others says so',
    observed({ metadata: { ...held, finalizers: ['a/b'] }, status: SYNCED }),
    { act: 'report', outcome: { state: 'released' } },
  ],
  ['deleted before anything was made is let go', observed({ metadata: deleted }), { act: 'release' }],
  [
    'deleted goes at the service first',
    observed({ metadata: deleted, status: SYNCED }),
    { act: 'remove', key: KEY },
  ],
  [
    'taken over while the service has it paused stays paused',
    observed({
      status: { ...CLAIMED, observedGeneration: undefined } as never,
      remote: stored(resource(), { enabled: false, consecutiveDlqCount: 3 }),
    }),
    isPaused(),
  ],
  [
    'to be left alone is, whatever else is to be done',
    observed({ metadata: { finalizers: [], annotations: { [UNMANAGED_ANNOTATION]: 'true' } }, secrets: [] }),
    { act: 'report', outcome: { state: 'held' } },
  ],
  [
    'to be left alone by a word that is not "true" is not',
    observed({ metadata: { finalizers: [], annotations: { [UNMANAGED_ANNOTATION]: 'yes' } } }),
    { act: 'finalize' },
  ],
  [
    'deleted while it is to be left alone waits',
    observed({ metadata: { ...deleted, annotations: { [UNMANAGED_ANNOTATION]: 'true' } }, status: SYNCED }),
    { act: 'report', outcome: { state: 'held' } },
  ],
  [
    'deleted after its claim goes at the service too',
    observed({ metadata: deleted, status: CLAIMED }),
    { act: 'remove' },
  ],
  [
    'deleted after its claim stays at the service where another resource has it by now',
    observed({ metadata: deleted, status: CLAIMED, rival: { name: 'shop/first', isOwner: true } }),
    { act: 'release' },
  ],
  [
    'deleted after its claim waits for another resource that comes first',
    observed({ metadata: deleted, status: CLAIMED, rival: { name: 'shop/first', isOwner: false } }),
    stalled('Conflict'),
  ],
  [
    'deleted goes at the service whoever else names it, once it was its own',
    observed({ metadata: deleted, status: SYNCED, rival: { name: 'shop/first', isOwner: false } }),
    { act: 'remove' },
  ],
  [
    'deleted after its creation was refused leaves what is there',
    observed({ metadata: deleted, status: CLAIMED, claimed: true }),
    { act: 'release' },
  ],
  [
    'gone at the service is let go',
    observed({ metadata: deleted, status: SYNCED, removed: true }),
    { act: 'release' },
  ],
  [
    'to be orphaned is let go without a word to the service',
    observed({ metadata: deleted, status: SYNCED, spec: { deletionPolicy: 'Orphan' }, secrets: [] }),
    { act: 'release' },
  ],
  [
    'deleted behind its Secret goes with the last key that worked',
    observed({ metadata: deleted, status: SYNCED, secrets: [], lastKeys: [OTHER_KEY] }),
    { act: 'remove', key: OTHER_KEY },
  ],
  [
    'deleted with a key that finds nothing goes with the last key that worked',
    observed({ metadata: deleted, status: SYNCED, lastKeys: [OTHER_KEY], missing: true, tried: [KEY] }),
    { act: 'remove', key: OTHER_KEY },
  ],
  [
    'deleted where no key finds anything is let go, with a word about it',
    observed({
      metadata: deleted,
      status: SYNCED,
      lastKeys: [OTHER_KEY, KEY],
      missing: true,
      tried: [KEY, OTHER_KEY],
    }),
    { act: 'release', missing: true },
  ],
  [
    'deleted without any key waits for one',
    observed({ metadata: deleted, status: SYNCED, secrets: [] }),
    { ...stalled('SecretNotFound'), againMs: ORPHAN_AFTER_MS } as Partial<Decision>,
  ],
  [
    'deleted without any key does not wait for ever',
    observed({ metadata: deleted, status: SYNCED, secrets: [], strandedMs: ORPHAN_AFTER_MS }),
    { act: 'release', orphaned: 'Secret penstock does not exist' },
  ],
  [
    'deleted with a revoked key waits for another as long as its Secret is there',
    observed({
      metadata: deleted,
      status: SYNCED,
      strandedMs: ORPHAN_AFTER_MS,
      tried: [KEY],
      refused: new AdminError('unauthorized', 'revoked'),
    }),
    stalled('InvalidCredentials'),
  ],
  [
    'deleted with a key of too low a role waits for a higher one as long as its Secret is there',
    observed({
      metadata: deleted,
      status: SYNCED,
      strandedMs: ORPHAN_AFTER_MS,
      tried: [KEY],
      refused: new AdminError('forbidden', 'Forbidden'),
    }),
    stalled('Forbidden'),
  ],
  [
    "deleted with a key of another account waits for one of the buffer's",
    observed({ metadata: deleted, status: SYNCED, tried: [KEY], outOfReach: 'of another account' }),
    {
      act: 'report',
      outcome: { state: 'stalled', reason: 'InvalidCredentials', message: 'of another account' },
    },
  ],
  [
    'deleted with a Secret that has no usable key waits for one',
    observed({
      metadata: deleted,
      status: SYNCED,
      strandedMs: ORPHAN_AFTER_MS,
      secrets: [secret('penstock', { apiKey: 'none' })],
    }),
    stalled('InvalidCredentials'),
  ],
  [
    'deleted behind its Secret does not wait for ever for a remembered key that is revoked',
    observed({
      metadata: deleted,
      status: SYNCED,
      secrets: [],
      strandedMs: ORPHAN_AFTER_MS,
      lastKeys: [OTHER_KEY],
      tried: [OTHER_KEY],
      refused: new AdminError('unauthorized', 'revoked'),
    }),
    { act: 'release', orphaned: 'revoked' },
  ],
]

describe('the decision about a buffer', () => {
  for (const [title, given, decision] of TABLE) {
    it(title, () => {
      const decided = decide(given)
      expect(pick(decided, decision)).to.deep.equal(decision)
    })
  }

  it('to create it says all that the resource says, and no more', () => {
    const decided = decide(observed({ status: CLAIMED, claimed: true })) as { desired: DesiredBuffer }
    expect(decided.desired.config).to.deep.include({ name: 'orders', dlqPauseThreshold: 3 })
    expect(decided.desired.config.delivery).to.deep.equal({
      url: 'https://shop.example/hook',
      method: 'POST',
      idempotencyHeader: 'x-idempotency-key',
      signing: { type: 'hmac-sha256', header: 'x-svc-signature', secret: SIGNING },
    })
    expect(decided.desired.config).to.not.have.property('enabled')
  })

  it('never says a secret for people', () => {
    for (const [title, given] of TABLE) {
      const decided = decide(given)
      const text = JSON.stringify('outcome' in decided && 'message' in decided.outcome ? decided.outcome : '')
      const note = 'note' in decided ? decided.note : ''
      for (const value of [KEY, SIGNING, 'hunter2', 'a new one']) {
        expect(text + note, title).to.not.include(value)
      }
    }
  })
})

/** The members of `decided` that `wanted` has; of an outcome, those that its outcome has. */
function pick(decided: object, wanted: object): object {
  return Object.fromEntries(
    Object.entries(wanted).map(([name, value]) => {
      const found = (decided as Record<string, unknown>)[name]
      const both = name === 'outcome' && typeof found === 'object' && found !== null
      return [name, both ? pick(found, value) : found]
    }),
  )
}

function ready(): Partial<Decision> {
  return { act: 'report', outcome: { state: 'ready' } } as Partial<Decision>
}

function isPaused(): Partial<Decision> {
  return { act: 'report', outcome: { state: 'paused' } } as Partial<Decision>
}

function stalled(reason: string, disowned?: true): Partial<Decision> {
  return { act: 'report', outcome: { state: 'stalled', reason, disowned } } as unknown as Partial<Decision>
}

function change(reason: string, patch: object): Partial<Decision> {
  return { act: 'change', reason, patch } as unknown as Partial<Decision>
}
