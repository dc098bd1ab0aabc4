import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Middleware } from 'koa'
import { openApiDocument } from './openapi/document.ts'
import { refusesMethod } from './read-only.ts'

/**
 * `GET /openapi.json` and the page that shows it, `GET /docs` (both public: docs/reference/api.md, "Conventions").
 * The page is swagger-ui from our own server: a fixed list of files, so no path leads anywhere else, and a policy by
 * which the browser loads and runs nothing of another host.
 */

interface Asset {
  readonly type: string
  readonly read: () => Buffer
}

const PAGE = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Penstock API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

/** Without a validator badge: swagger-ui would fetch it from a public host. */
const START = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null })
`

const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ')

export function documentsRoute(): Middleware {
  const assets = assetsByPath()
  return async (ctx, next) => {
    const asset = assets.get(ctx.path)
    if (asset === undefined) return next()
    if (refusesMethod(ctx)) return
    ctx.set('Content-Security-Policy', POLICY)
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.set('Cache-Control', 'public, max-age=300')
    ctx.type = asset.type
    ctx.body = asset.read()
  }
}

function assetsByPath(): ReadonlyMap<string, Asset> {
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  const file = (name: string) => once(() => readFileSync(join(folder, name)))
  const text = (content: () => string) => once(() => Buffer.from(content()))
  return new Map<string, Asset>([
    ['/openapi.json', { type: 'application/json', read: text(() => JSON.stringify(openApiDocument())) }],
    ['/docs', { type: 'text/html', read: text(() => PAGE) }],
    ['/docs/start.js', { type: 'text/javascript', read: text(() => START) }],
    ['/docs/swagger-ui-bundle.js', { type: 'text/javascript', read: file('swagger-ui-bundle.js') }],
    ['/docs/swagger-ui.css', { type: 'text/css', read: file('swagger-ui.css') }],
    ['/docs/favicon-32x32.png', { type: 'image/png', read: file('favicon-32x32.png') }],
  ])
}

/** Nobody may ever look: it is read when somebody does, and kept. */
function once(read: () => Buffer): () => Buffer {
  let kept: Buffer | undefined
  return () => {
    kept ??= read()
    return kept
  }
}
