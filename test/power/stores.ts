/** The servers of a run: those whose power is cut, in a machine, and the other ones beside it. */
import { type Brokers, oneBroker } from '../faults/brokers.ts'
import type { TrialServers } from '../faults/cluster-trial.ts'
import { freshDatabase } from '../support/servers.ts'
import type { Guest } from './guest.ts'
import type { PowerKind } from './kinds.ts'
import type { Machine } from './machine.ts'
import { NatsMachine } from './nats-machine.ts'
import { openPostgresMachine } from './postgres-machine.ts'

export interface PowerStores {
  readonly servers: TrialServers
  readonly machine: Machine
  /** The only member of a cluster in the machine; null: there is no such cluster. */
  readonly member: string | null
  /** Resolves when what is in the machine answers, and has all that the others have. */
  untilReady(): Promise<void>
}

/** They end with the trial that is given `servers`. */
export function openStores(guest: Guest, kind: PowerKind): Promise<PowerStores> {
  return kind.server === 'nats' ? natsStores(guest, kind) : postgresStores(guest, kind)
}

async function natsStores(guest: Guest, { cache, sync, inside, beside }: PowerKind): Promise<PowerStores> {
  const nats = await NatsMachine.open({ guest, cache, sync, inside, beside })
  const { machine } = nats
  const broker: Brokers = {
    brokers: nats.urls.map((_, index) => asBroker(nats.inside[index] ?? `nats-${index + 1}`, machine)),
    natsUrls: nats.urls,
    natsPort: undefined,
    stop: () => nats.close(),
  }
  return {
    servers: { broker, databaseUrl: await freshDatabase(), sync },
    machine,
    member: beside > 0 ? nats.inside[0]! : null,
    untilReady: () => nats.untilReady(),
  }
}

async function postgresStores(guest: Guest, { cache }: PowerKind): Promise<PowerStores> {
  const { machine, databaseUrl, untilReady } = await openPostgresMachine({ guest, cache })
  const beside = await oneBroker()
  const stop = async () => {
    await beside.stop()
    await machine.close()
  }
  return { servers: { broker: { ...beside, stop }, databaseUrl }, machine, member: null, untilReady }
}

/** A trial knows it by its name; it is the run that cuts its power. */
function asBroker(name: string, machine: Machine): Brokers['brokers'][number] {
  const refuse = () => {
    throw new Error(`${name}: cut the power of its machine`)
  }
  return {
    name,
    get running() {
      return machine.running
    },
    kill: refuse,
    restart: refuse,
  }
}
