import { endpointRows } from './endpoints.ts'
import { roleRows } from './roles.ts'
import type { Row } from './row.ts'
import { ruleRows } from './rules.ts'

/** The whole contract. */
export const rows: readonly Row[] = [...endpointRows, ...roleRows, ...ruleRows]
