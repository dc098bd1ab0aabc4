/** What a command works with: its streams, the environment, and the service that they name. */
import { createPenstock, type Penstock } from '@penstock-local/client'
import { EXIT } from './exit.ts'
import { Failure } from './failure.ts'
import { jsonLine } from './output.ts'
import { type Environment, type Profile, profilePath, readProfile } from './profile.ts'

export interface Streams {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
  readonly env: Environment
}

export interface GlobalOptions {
  readonly json?: boolean
  readonly profile?: string
}

/** Somebody may be waiting; a webhook is worth more patience. */
const PATIENCE = { attempts: 3 }

/** One call of the program. */
export class Session {
  readonly streams: Streams
  readonly json: boolean
  readonly profilePath: string

  constructor(streams: Streams, { json = false, profile }: GlobalOptions) {
    this.streams = streams
    this.json = json
    this.profilePath = profilePath(streams.env, profile)
  }

  /** With `--json` one line of JSON, else the text. */
  print(value: unknown, text: string): void {
    this.streams.stdout.write(`${this.json ? jsonLine(value) : text}\n`)
  }

  /** For people, beside the result; nothing with `--json`. */
  note(text: string): void {
    if (!this.json) this.streams.stderr.write(`${text}\n`)
  }

  /** With a key, for management. */
  penstock(): Penstock {
    return createPenstock({ ...this.#target(), retries: PATIENCE })
  }

  /** Without a key, for ingest. */
  sender(): Penstock {
    const url = this.streams.env.PENSTOCK_URL || this.#profile()?.url
    if (url === undefined)
      throw new Failure(EXIT.usage, 'no service: set PENSTOCK_URL, or run penstock login')
    return createPenstock({ url })
  }

  /** A secret of the environment: an argument would stand in the list of processes. */
  secret(name: string): string {
    const value = this.streams.env[name]
    if (!value) throw new Failure(EXIT.usage, `${name} is not set`)
    return value
  }

  #profile(): Profile | undefined {
    return readProfile(this.profilePath)
  }

  /** The key of the profile goes to the service of the profile only. */
  #target(): Profile {
    const { PENSTOCK_URL: url, PENSTOCK_API_KEY: apiKey } = this.streams.env
    if (url && apiKey) return { url, apiKey }
    const profile = this.#profile()
    if (profile === undefined)
      throw new Failure(
        EXIT.credential,
        'no key: run penstock login, or set PENSTOCK_URL and PENSTOCK_API_KEY',
      )
    if (apiKey) return { url: profile.url, apiKey }
    if (url && new URL(url).href !== new URL(profile.url).href)
      throw new Failure(
        EXIT.credential,
        `PENSTOCK_URL is not ${profile.url}, which the key of the profile is for: set PENSTOCK_API_KEY`,
      )
    return profile
  }
}
