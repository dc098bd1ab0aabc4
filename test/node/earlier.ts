/** The release that an upgrade comes from: its chart, and its image on the node. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { alsoBuild, IMAGES, load, node, ROOT, script } from './real-node.ts'

/**
 * The last release that went out; docs/operations/release.md sets it. A commit and no tag: a tag can be moved, and
 * clones without tags are common. It is the last one whose schema and chart this version may meet.
 */
export const EARLIER = '3b5d5df1f5a05eeb804748ea3477c7e249c3c60d'
/** Of its image: what `image.tag` has to say. */
export const EARLIER_TAG = 'earlier'

const isHere = spawnSync('git', ['-C', ROOT, 'cat-file', '-e', `${EARLIER}^{commit}`]).status === 0
if (isHere) alsoBuild('the image of the release before', () => script('images.sh', [IMAGES, EARLIER]))

/** The path of its chart; undefined, said loudly, in a clone that lacks the commit. Rejects when its image does not build. */
export async function earlierRelease(): Promise<string | undefined> {
  if (!isHere) {
    const why = `this clone lacks the commit ${EARLIER} (git fetch --unshallow)`
    process.stderr.write(`\n*** SKIPPED: the upgrade from the release before: ${why}. ***\n\n`)
    return undefined
  }
  await load(await node(), 'earlier.tar')
  return join(IMAGES, 'earlier')
}
