/** Plans and credit packs on sale (docs/reference/api.md, "Plans" and "Credit packs"): one SQL operation a function. */

import type { Catalogue, CataloguePack, CataloguePlan } from '../billing/catalogue.ts'
import type { CatalogueStore } from '../billing/ports.ts'
import type { Plan } from '../domain/model.ts'
import type { Database, Queryable, Transaction } from './connection.ts'

export interface PlanRow {
  plan_id: string
  name: string
  price_in_cents: number
  currency: Plan['currency']
  prices: Plan['prices']
  credits_per_cycle: number
  is_active: boolean
  offer_id: string | null
}

interface PackRow {
  pack_id: string
  credits: number
  is_active: boolean
  offer_id: string | null
}

export function createCatalogueStore(db: Database): CatalogueStore {
  return {
    publish: (catalogue) =>
      db.begin(async (transaction) => {
        // Nodes that start together write one after the other; who reads, or refers to a row, is not held up.
        await transaction`LOCK TABLE plans, credit_packs IN SHARE ROW EXCLUSIVE MODE`
        await publishPlans(transaction, catalogue)
        await publishPacks(transaction, catalogue)
      }),
    plans: () => listPlans(db),
    packs: () => listPacks(db),
  }
}

export async function listPlans(db: Queryable): Promise<CataloguePlan[]> {
  const rows = await db<PlanRow[]>`SELECT * FROM plans ORDER BY credits_per_cycle, plan_id COLLATE "C"`
  return rows.map((row) => ({ ...planOf(row), offerId: row.offer_id }))
}

export async function listPacks(db: Queryable): Promise<CataloguePack[]> {
  const rows = await db<PackRow[]>`SELECT * FROM credit_packs ORDER BY credits, pack_id COLLATE "C"`
  return rows.map((row) => ({
    packId: row.pack_id,
    credits: row.credits,
    isActive: row.is_active,
    offerId: row.offer_id,
  }))
}

export function planOf(row: PlanRow): Plan {
  return {
    planId: row.plan_id,
    name: row.name,
    priceInCents: row.price_in_cents,
    currency: row.currency,
    prices: row.prices,
    creditsPerCycle: row.credits_per_cycle,
    isActive: row.is_active,
  }
}

async function publishPlans(db: Transaction, { plans }: Catalogue): Promise<void> {
  for (const plan of plans) {
    await db`
      INSERT INTO plans (plan_id, name, price_in_cents, currency, prices, credits_per_cycle, is_active, offer_id)
      VALUES (${plan.planId}, ${plan.name}, ${plan.priceInCents}, ${plan.currency}, ${db.json(plan.prices)},
        ${plan.creditsPerCycle}, ${plan.isActive}, ${plan.offerId})
      ON CONFLICT (plan_id) DO UPDATE SET name = excluded.name, price_in_cents = excluded.price_in_cents,
        currency = excluded.currency, prices = excluded.prices,
        credits_per_cycle = excluded.credits_per_cycle, is_active = excluded.is_active,
        offer_id = excluded.offer_id`
  }
  await db`UPDATE plans SET is_active = false
    WHERE is_active AND plan_id <> ALL (${plans.map((plan) => plan.planId)}::text[])`
}

async function publishPacks(db: Transaction, { packs }: Catalogue): Promise<void> {
  for (const pack of packs) {
    await db`
      INSERT INTO credit_packs (pack_id, credits, is_active, offer_id)
      VALUES (${pack.packId}, ${pack.credits}, ${pack.isActive}, ${pack.offerId})
      ON CONFLICT (pack_id) DO UPDATE SET credits = excluded.credits, is_active = excluded.is_active,
        offer_id = excluded.offer_id`
  }
  await db`UPDATE credit_packs SET is_active = false
    WHERE is_active AND pack_id <> ALL (${packs.map((pack) => pack.packId)}::text[])`
}
