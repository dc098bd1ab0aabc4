import type { Context } from 'koa'

/** Answers a method that a page of one representation does not have; whether it did. RFC 9110, section 15.5.6. */
export function refusesMethod(ctx: Context): boolean {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return false
  ctx.status = ctx.method === 'OPTIONS' ? 204 : 405
  ctx.set('Allow', 'GET, HEAD, OPTIONS')
  return true
}
