/**
 * JSON merge patch (RFC 7396) on values from `JSON.parse`. Results are built from own properties only, so a
 * member called `__proto__` stays a member and is seen by whoever validates the result.
 */

/**
 * No configuration nests deeper: what lies below is kept as it is, for the validator to refuse, and a body
 * of a million levels cannot exhaust the stack.
 */
const DEEPEST = 8

export type JsonObject = Record<string, unknown>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `target` with `patch` applied; shares no object of the first levels with either of them. */
export function mergePatch(target: unknown, patch: unknown, level = 0): unknown {
  if (!isJsonObject(patch) || level > DEEPEST) return patch
  const merged = new Map<string, unknown>(Object.entries(isJsonObject(target) ? target : {}))
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), change, level + 1))
  }
  return Object.fromEntries(merged)
}

/** A copy that may be written to without touching `value`. */
export function copyJson(value: unknown, level = 0): unknown {
  if (level > DEEPEST) return value
  if (Array.isArray(value)) return value.map((element) => copyJson(element, level + 1))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, copyJson(member, level + 1)]),
  )
}
