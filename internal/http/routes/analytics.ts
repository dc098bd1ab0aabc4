import type { Principal } from '../../domain/principal.ts'
import { identifier } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of analytics that these rows call. */
export interface AnalyticsService {
  /** `AnalyticsSummary`. */
  summary(principal: Principal): Promise<unknown>
  /** `AnalyticsTimeseries`; `days`: 1 to 90. */
  timeseries(
    principal: Principal,
    range: { days: number; projectId?: string; bufferId?: string },
  ): Promise<unknown>
}

/** docs/reference/analytics.md. */
export function analyticsRoutes(analytics: AnalyticsService): Route[] {
  return [summary(analytics), timeseries(analytics)]
}

function summary(analytics: AnalyticsService): Route {
  return route({
    method: 'GET',
    path: '/v1/analytics/summary',
    operationId: 'readAnalyticsSummary',
    summary: "Read today's figures and their change from yesterday",
    action: 'read',
    customerId: 'required',
    answers: { status: 200, schema: 'AnalyticsSummary' },
    errors: [],
    handler: async (call) => ({ status: 200, body: await analytics.summary(call.principal) }),
  })
}

function timeseries(analytics: AnalyticsService): Route {
  return route<unknown, { days: number; projectId?: string; bufferId?: string }, unknown>({
    method: 'GET',
    path: '/v1/analytics/timeseries',
    operationId: 'readAnalyticsTimeseries',
    summary: 'Read the figures of the last days, oldest first',
    action: 'read',
    customerId: 'required',
    query: {
      projectId: identifier('Only figures of this project'),
      bufferId: identifier('Only figures of this buffer'),
      days: {
        type: 'integer',
        description: 'UTC days to answer, today included.',
        minimum: 1,
        maximum: 90,
        default: 7,
      },
    },
    answers: { status: 200, schema: 'AnalyticsTimeseries' },
    errors: [],
    handler: async ({ principal, query: { days, projectId, bufferId } }) => ({
      status: 200,
      body: await analytics.timeseries(principal, {
        days,
        ...(projectId !== undefined && { projectId }),
        ...(bufferId !== undefined && { bufferId }),
      }),
    }),
  })
}
