/**
 * OpenTelemetry for a process: metrics in Prometheus' text, read from the ops port. Traces go out only when
 * OpenTelemetry's own variables ask for them; without any, nothing leaves the process.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Meter, metrics } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { NodeSDK } from '@opentelemetry/sdk-node'

export interface Metrics {
  readonly meter: Meter
  /** Answers a GET with all metrics in Prometheus' text format. */
  handle(request: IncomingMessage, response: ServerResponse): void
  shutdown(): Promise<void>
}

/** Once a process: it registers itself with OpenTelemetry's API. `env` decides whether traces are sent. */
export function startMetrics(role: string, env: Readonly<Record<string, string | undefined>>): Metrics {
  const exporter = new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true })
  const sdk = new NodeSDK({
    serviceName: env.OTEL_SERVICE_NAME ?? `penstock-${role}`,
    metricReaders: [exporter],
    ...(wantsTraces(env) ? {} : { spanProcessors: [] }),
  })
  sdk.start()
  return {
    meter: metrics.getMeter('penstock'),
    handle: (request, response) => exporter.getMetricsRequestHandler(request, response),
    shutdown: async () => {
      await sdk.shutdown()
      metrics.disable()
    },
  }
}

/** Without this the SDK would look for a collector on localhost. */
function wantsTraces(env: Readonly<Record<string, string | undefined>>): boolean {
  return Object.keys(env).some(
    (name) => name === 'OTEL_TRACES_EXPORTER' || name.startsWith('OTEL_EXPORTER_OTLP_'),
  )
}
