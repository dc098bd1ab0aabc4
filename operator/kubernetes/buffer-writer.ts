/** The operator's own writes to Buffer resources. Each names the uid: one that was deleted and made anew is another. */
import {
  apiVersion,
  type BufferResource,
  type BufferStatus,
  fieldManager,
  kind,
  plural,
} from '../resource.ts'
import type { ApiServer } from './api-server.ts'

export class BufferResourceWriter {
  readonly #api: ApiServer

  constructor(api: ApiServer) {
    this.#api = api
  }

  /**
   * Resolves with the resource as it then is. Rejects with ApiError 409 when the resource changed since it was read, for the
   * list is written as a whole, and with 404 when it is gone.
   */
  setFinalizers(resource: BufferResource, finalizers: readonly string[]): Promise<BufferResource> {
    const { uid, resourceVersion } = resource.metadata
    return this.#api.request('PATCH', pathOf(resource), {
      query: { fieldManager },
      contentType: 'application/merge-patch+json',
      body: { metadata: { uid, resourceVersion, finalizers } },
    })
  }

  /**
   * Server-side apply of the whole status: a field that it lacks is removed, those of others stay. Rejects with ApiError
   * 409 when another resource has the name by now, and with 404 when none has.
   */
  applyStatus(resource: BufferResource, status: BufferStatus): Promise<BufferResource> {
    const { name, namespace, uid } = resource.metadata
    return this.#api.request('PATCH', `${pathOf(resource)}/status`, {
      query: { fieldManager, force: true },
      contentType: 'application/apply-patch+yaml',
      body: { apiVersion, kind, metadata: { name, namespace, uid }, status },
    })
  }
}

function pathOf({ metadata: { namespace, name } }: BufferResource): string {
  return `/apis/${apiVersion}/namespaces/${namespace}/${plural}/${name}`
}
