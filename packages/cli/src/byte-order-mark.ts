/** Editors and shells of Windows write one in front of a file. JSON must not have it (RFC 8259, 8.1). */
export function withoutMark(content: string): string {
  return content.startsWith('\uFEFF') ? content.slice(1) : content
}
