/** The base of the image, as its Dockerfile names it: `FROM <name>:<tag>[@sha256:<digest>]`, once a stage. */

const FROM = /^FROM (\S+)/gm
/** Of a digest of the registry's protocol; no other algorithm is in use. */
export const DIGEST = /^sha256:[0-9a-f]{64}$/

/** Each base once, in their order; stages of one base have one. */
export function basesOf(dockerfile: string): string[] {
  return [...new Set([...dockerfile.matchAll(FROM)].map(([, base]) => base!))]
}

/** Without its digest. */
export function tagOf(base: string): string {
  return base.split('@')[0]!
}

/** Whether it names one image for ever, whatever becomes of the tag. */
export function isPinned(base: string): boolean {
  return DIGEST.test(base.split('@')[1] ?? '')
}

/** Every stage of this tag gets the digest, in the place of the one that it has. */
export function pinned(dockerfile: string, tag: string, digest: string): string {
  return dockerfile.replace(FROM, (line, base: string) =>
    tagOf(base) === tag ? `FROM ${tag}@${digest}` : line,
  )
}
