/** The name in a Host header, lowercase and without its port; an IPv6 address without its brackets. '': there is none. */
export function hostIn(header: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(header) ?? []
  return (bracketed ?? plain ?? '').toLowerCase()
}
