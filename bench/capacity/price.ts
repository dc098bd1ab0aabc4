/** What a plan costs at list prices, USD; whoever commits to years pays about half. */
import type { Demand } from './model.ts'

/**
 * Half of an m7g.large with its two cores and 8 GB, Linux, on demand in us-east-1 in June 2026
 * (https://www.factualminds.com/blog/amazon-ec2-on-demand-pricing-instance-families-2026/).
 */
export const CORE_HOUR = 0.0816 / 2
/** What leaves one zone and enters another (https://www.duckbillgroup.com/blog/aws-cross-az-data-transfer-costs-more-than-aws-says/). */
export const GB_BETWEEN_ZONES = 0.02
const HOURS_A_MONTH = 730

/** Of so many cores, a month. */
export function monthOfCores(cores: number): number {
  return cores * CORE_HOUR * HOURS_A_MONTH
}

/** Items of a month. */
export function itemsAMonth({ itemsPerSecond }: Demand): number {
  return itemsPerSecond * 3_600 * HOURS_A_MONTH
}

/**
 * Bytes of payloads that pass from one zone into another in a month, everything spread over three: two of three from
 * their ingress to a stream's leader, all from there to its followers, and two of three to the shard's owner.
 */
export function bytesBetweenZones(demand: Demand): number {
  return itemsAMonth(demand) * demand.itemBytes * (2 / 3 + (demand.replicas - 1) + 2 / 3)
}
