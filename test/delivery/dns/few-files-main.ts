/**
 * Looks a name up in a hosts file while no file descriptor is left, and then again: prints both outcomes.
 * `node few-files-main.ts <hosts> <resolv.conf> <name>`
 */
import { closeSync, openSync } from 'node:fs'
import { SystemFiles } from '../../../internal/delivery/dns/system-files.ts'

const [, , hosts = '', resolvConf = '', name = ''] = process.argv
const files = new SystemFiles({ hosts, resolvConf })
const outcomeOf = () => [files.addressesOf(name) ?? [], files.resolvConf.servers]

const descriptors: number[] = []
try {
  for (;;) descriptors.push(openSync('/dev/null', 'r'))
} catch {
  // None is left.
}
const without = outcomeOf()
for (const descriptor of descriptors) closeSync(descriptor)
process.stdout.write(JSON.stringify([without, outcomeOf()]))
