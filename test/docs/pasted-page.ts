/** A page whose commands are pasted, in their order, into one shell beside a local instance of their own. */
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before } from 'mocha'
import { freePort } from '../../internal/embedded/port.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { Shell, shellSections } from '../support/shell-commands.ts'

const ROOT = join(import.meta.dirname, '..', '..')

export interface PastedPage {
  /** The commands under each heading that has some, in their order. */
  readonly sections: ReadonlyMap<string, string>
  /** Headings whose commands were pasted so far. */
  readonly pasted: readonly string[]
  readonly installation: Installation
  /** What the commands wrote; rejects when one fails. `change`: what a busy machine needs otherwise. */
  paste(heading: string, change?: (commands: string) => string): Promise<string>
}

/**
 * For a `describe`: starts the instance before its tests, as the page's reader has done. `more`: what else the reader
 * may have set, once the hooks before these have run.
 */
export function pastedPage(page: string, more: () => Record<string, string> = () => ({})): PastedPage {
  const sections = shellSections(page)
  const pasted: string[] = []
  let installation: Installation
  let shell: Shell

  before(async function () {
    this.timeout(120_000)
    const servers = {
      PENSTOCK_NATS_URL: (await natsAccount()).url,
      PENSTOCK_DATABASE_URL: await freshDatabase(),
    }
    installation = await createInstallation({
      customers: ['local'],
      env: { ...servers, PENSTOCK_SHARDS: '2' },
    })
    const { url, opsUrl } = await installation.start()
    shell = new Shell({
      cwd: ROOT,
      // The addresses and the key that a reader has from the first start, and what `npm run` finds the servers by.
      env: {
        HOME: process.env.HOME ?? '',
        ...servers,
        P: url,
        OPS: opsUrl,
        KEY: installation.api().key!,
        PORT: String(await freePort()),
        ...more(),
      },
    })
  })

  after(async () => {
    await shell?.close()
    await installation?.stop()
  })

  return {
    sections,
    pasted,
    get installation() {
      return installation
    },
    paste(heading, change = (commands) => commands) {
      const commands = sections.get(heading)
      if (commands === undefined) throw new Error(`${page} has no commands under "${heading}"`)
      pasted.push(heading)
      return shell.paste(change(commands))
    },
  }
}

export interface Received {
  headers: Record<string, string>
  body: { items: { payload: unknown }[] }
}

/** What the receiver of the local instance showed: the list that begins with `[{"receivedAt"`. */
export function received(output: string): Received[] {
  const text = output.split('\n').join(' ')
  const list = /\[\{"receivedAt".*?\}\]\}\}\]/.exec(text)?.[0]
  if (list === undefined) throw new Error(`the receiver showed nothing:\n${output}`)
  return JSON.parse(list)
}

/** A reader's machine is not busy: on one that is, a pause would make two batches, or none in time. */
export function patient(commands: string, ...waits: readonly (readonly [string, string])[]): string {
  return waits.reduce((text, [short, long]) => {
    expect(text).to.include(short)
    return text.replace(short, long)
  }, commands)
}
