/**
 * Three resources of one account name one buffer, and answers of the service are lost: at no moment do two of them have the
 * buffer, and in the end none writes against another. In memory, in virtual time, in many orders of things.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Buffer } from '../../../internal/domain/model.ts'
import { BufferIdClaims } from '../../../operator/reconcile/buffer-id-claims.ts'
import { type AdminBuffers, AdminError, type SecretResource } from '../../../operator/reconcile/ports.ts'
import { BufferReconciler } from '../../../operator/reconcile/reconciler.ts'
import { type BufferResource, UNMANAGED_ANNOTATION } from '../../../operator/resource.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { seededFractions } from '../../support/seeded.ts'
import { resource, SECRETS, spec, stored } from './fixtures.ts'
import { quietParts, writerTo } from './quiet-parts.ts'

const { signal } = new AbortController()
const NAMES = ['one', 'two', 'three']
const SEEDS = 150

/** A service with the buffer `orders` or without it, which answers each request when the walk says so. */
class Service {
  buffer: Buffer | undefined
  updates = 0
  /** Answers that are due, each with what becomes of it. */
  readonly due: ((fate: 'answered' | 'lost' | 'failed') => void)[] = []

  readonly admin: AdminBuffers = {
    read: () => this.#later(() => this.buffer),
    create: (_key, body) =>
      this.#later(() => {
        if (this.buffer !== undefined) throw new AdminError('exists', 'Buffer already exists')
        this.buffer = { ...stored(), ...(body as Partial<Buffer>) }
        return this.buffer
      }),
    update: (_key, _id, patch) =>
      this.#later(() => {
        if (this.buffer === undefined) throw new AdminError('absent', 'Buffer not found')
        this.updates++
        const delivery = { ...this.buffer.delivery, ...(patch.delivery as object) }
        this.buffer = { ...this.buffer, ...(patch as Partial<Buffer>), delivery }
        return this.buffer
      }),
    remove: () => this.#later(() => false),
    holder: async () => ({ customerId: 'acme', projects: null }),
  }

  #later<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.due.push((fate) => {
        const away = new AdminError('unavailable', 'away')
        if (fate === 'failed') return reject(away)
        try {
          const result = work()
          if (fate === 'lost') reject(away)
          else resolve(result)
        } catch (error) {
          reject(error)
        }
      })
    })
  }
}

class World {
  readonly clock = new ManualClock()
  readonly service = new Service()
  readonly resources = new Map<string, BufferResource>()
  readonly running = new Map<string, Promise<unknown>>()
  #reconciler: BufferReconciler

  constructor(adopts: boolean) {
    for (const name of NAMES) {
      const delivery = { ...spec().delivery, url: `https://${name}.example/hook` }
      const wanted = { bufferId: 'orders', delivery, adoptionPolicy: adopts ? 'Adopt' : 'Never' } as const
      this.resources.set(
        `${name}/${name}`,
        resource({ spec: wanted, metadata: { name, namespace: name, uid: name } }),
      )
    }
    this.#reconciler = this.#operator()
  }

  /** Another process leads, once the passes of the former one have ended. */
  async restart(): Promise<void> {
    await this.settle(() => 'failed')
    this.#reconciler = this.#operator()
  }

  begin(key: string): void {
    if (this.running.has(key)) return
    const pass = this.#reconciler
      .reconcile(key, signal)
      .catch((error: unknown) => expect(error).to.be.instanceOf(AdminError))
      .finally(() => this.running.delete(key))
    this.running.set(key, pass)
  }

  async settle(fate: () => 'answered' | 'lost' | 'failed'): Promise<void> {
    while (this.running.size > 0) {
      this.service.due.shift()?.(fate())
      await turns()
    }
  }

  /** Those that the service has shown the buffer as their own. */
  get owners(): string[] {
    return [...this.resources]
      .filter(([, { status }]) => status?.ingestPath !== undefined)
      .map(([key]) => key)
  }

  #operator(): BufferReconciler {
    const { clock, resources } = this
    const store = {
      get: (key: string) => resources.get(key),
      list: () => [...resources.values()],
      byIndex: () => [...resources.values()],
    }
    const write = async (written: BufferResource) => {
      resources.set(`${written.metadata.namespace}/${written.metadata.name}`, written)
      return written
    }
    const find = (key: string) => SECRETS.find(({ metadata }) => metadata.name === key.split('/')[1])
    return new BufferReconciler({
      ...quietParts,
      clock,
      admin: this.service.admin,
      resources: store,
      claims: new BufferIdClaims(store, clock),
      verifyMs: 1_000,
      secrets: { get: find, list: () => [], byIndex: () => [] },
      values: { read: async (known) => known as SecretResource },
      writer: writerTo(write),
    })
  }
}

/** All that follows from an answer has happened. */
async function turns(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

describe('one buffer that several resources name', () => {
  for (const adopts of [false, true]) {
    it(`has one of them, ${adopts ? 'also where each may take it over' : 'whatever answers are lost'}`, async function () {
      this.timeout(120_000)
      for (let seed = 1; seed <= SEEDS; seed++) await walk(seed, adopts)
    })
  }
})

async function walk(seed: number, adopts: boolean): Promise<void> {
  const random = seededFractions(seed)
  const world = new World(adopts)
  const keys = [...world.resources.keys()]
  for (let step = 0; step < 60; step++) {
    const key = keys[Math.floor(random() * 3)]!
    const choice = random()
    if (choice < 0.45) world.begin(key)
    else if (choice < 0.8) {
      const { due } = world.service
      const [answer] = due.splice(Math.floor(random() * due.length), 1)
      answer?.((['answered', 'answered', 'lost', 'failed'] as const)[Math.floor(random() * 4)]!)
    } else if (choice < 0.9) world.clock.advance(random() * 40_000)
    else if (choice < 0.97) toggle(world.resources, key)
    else await world.restart()
    await turns()
    expect(world.owners.length, `seed ${seed}, step ${step}`).to.be.at.most(1)
  }
  await end(world, keys, seed)
}

/** Somebody pauses a resource, or lets it go on. */
function toggle(resources: Map<string, BufferResource>, key: string): void {
  const each = resources.get(key)!
  const { annotations, ...metadata } = each.metadata
  const paused = { ...metadata, annotations: { [UNMANAGED_ANNOTATION]: 'true' } }
  resources.set(key, { ...each, metadata: annotations === undefined ? paused : metadata })
}

/** The service answers, nothing is paused any more: one has the buffer, and nothing is written against it. */
async function end(world: World, keys: readonly string[], seed: number): Promise<void> {
  for (const key of keys)
    if (world.resources.get(key)!.metadata.annotations !== undefined) toggle(world.resources, key)
  let updates = 0
  for (let round = 0; round < 40; round++) {
    if (round === 30) ({ updates } = world.service)
    for (const key of keys) world.begin(key)
    await world.settle(() => 'answered')
    world.clock.advance(30_000)
    expect(world.owners.length, `seed ${seed}, in the end`).to.be.at.most(1)
  }
  expect(world.owners, `seed ${seed}`).to.have.length(1)
  expect(world.service.updates, `seed ${seed}: changes at the end`).to.equal(updates)
}
