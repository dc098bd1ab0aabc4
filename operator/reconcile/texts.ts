/** Texts as the API server keeps them. */

/** RFC 3339, whole seconds, as all times of Kubernetes. `ms`: Unix epoch ms. */
export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** At most `longest` UTF-16 code units. Half a character at the end is U+FFFD, as the API server would store it. */
export function cutText(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed()
}
