/** Three lines to paste, for the local instance: they need a key that was left in the data folder. */
import { existsSync } from 'node:fs'

import { welcomeLines } from '../penstock/banner.ts'
import { ownerKeyFile } from '../wiring/secrets.ts'
import type { ClusterNodes } from './nodes.ts'

/** Empty when there is no such key: then those of PENSTOCK_OWNER_KEYS hold. */
export function tryLines(dataDir: string, { all }: ClusterNodes): string {
  const keyFile = ownerKeyFile(dataDir)
  if (!existsSync(keyFile)) return ''
  const urlOf = (name: string) => all.find((node) => node.name === name)?.url ?? ''
  const [url, ingestUrl] = [urlOf('admin'), urlOf('ingress-1')]
  return welcomeLines({ url, ingestUrl, keyFile })
}
