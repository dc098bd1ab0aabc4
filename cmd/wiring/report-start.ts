/** How a program tells why it does not start. */
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'
import { UnusableBrokerError } from '../../internal/nats/connection.ts'
import { NewerSchemaError, OlderSchemaError } from '../../internal/postgres/migrate.ts'
import type { Logger } from '../../internal/telemetry/logger.ts'
import { ConfigError } from '../config/config.ts'
import { NewerNeighbourError } from './neighbours.ts'

/** What whoever starts the service can mend is one line; anything else comes with its stack. */
export function reportStart(log: Logger, error: unknown): void {
  const expected =
    error instanceof ConfigError ||
    error instanceof EmbeddedStartError ||
    error instanceof UnusableBrokerError ||
    error instanceof NewerNeighbourError ||
    error instanceof NewerSchemaError ||
    error instanceof OlderSchemaError ||
    // Refused connections, ports in use, names that do not resolve: the system's own words say it.
    /^E[A-Z]+$/.test(String((error as NodeJS.ErrnoException).code))
  if (expected) log.fatal((error as Error).message)
  else log.fatal({ err: error }, 'the start failed')
}
