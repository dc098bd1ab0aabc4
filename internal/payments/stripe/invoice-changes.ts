/** Changes of a plan in the middle of a period, by the lines that give back the one and bill the other. */

import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import { type PlanChange, UnusableReadingError } from '../../billing/readings.ts'
import { msOf, orMissing } from './client.ts'
import { givesBack, isProration, type LineOfAnyVersion, lineNames } from './invoice-lines.ts'
import { namesOf, planOf, requirePlan } from './offers.ts'

/** In the order of their time. Lines of what is no plan, such as an item beside it, are of no change. */
export async function changesOf(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  lines: readonly LineOfAnyVersion[],
): Promise<PlanChange[]> {
  const prorations = lines.filter(isProration).filter(({ period }) => period.start < period.end)
  const times = [...new Set(prorations.map(({ period }) => period.start))].sort((a, b) => a - b)
  const changes = await Promise.all(
    times.map((time) =>
      changeAt(
        stripe,
        plans,
        prorations.filter(({ period }) => period.start === time),
      ),
    ),
  )
  return changes.flat()
}

/** Several changes at one time are one. */
async function changeAt(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  lines: readonly LineOfAnyVersion[],
): Promise<PlanChange[]> {
  const named = await Promise.all(
    lines.map(async (line) => ({ line, planId: await planOfProration(stripe, plans, line) })),
  )
  const plansOf = (isLeft: boolean) =>
    named.filter(({ line }) => givesBack(line) === isLeft).map(({ planId }) => planId)
  const [left, bought] = [plansOf(true), plansOf(false)]
  const planId = bought.findLast((each) => each !== undefined && !left.includes(each))
  if (planId === undefined) return []
  const fromPlanId = left.find((each) => each !== undefined && !bought.includes(each)) ?? null
  const { start, end } = lines[0]!.period
  return [{ fromPlanId, planId, changedAt: msOf(start), periodEnd: msOf(end) }]
}

/** undefined: it is of no plan. */
async function planOfProration(
  stripe: Stripe,
  plans: readonly CataloguePlan[],
  line: LineOfAnyVersion,
): Promise<string | undefined> {
  const names = lineNames(line)
  const known = planOf(plans, names)
  if (known !== undefined) return known
  const price = names.id === '' ? undefined : await orMissing(stripe.prices.retrieve(names.id))
  try {
    return await requirePlan(stripe, plans, price === undefined ? names : namesOf(price))
  } catch (error) {
    if (error instanceof UnusableReadingError) return undefined
    throw error
  }
}
