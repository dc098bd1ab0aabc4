/** RFC 3339, whole seconds, as all times of Kubernetes. `ms`: Unix epoch ms. */
export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
